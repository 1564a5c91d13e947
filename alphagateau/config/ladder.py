"""Keys of a ladder file, each declared once, with its help, unit, default and range."""

import re
from typing import Literal

from pydantic import model_validator

from alphagateau.config.records import choice, key, names, num, program_or_path, record, show


@record
class LadderConfig:
    """Players, pairing and end of a ladder. Paths are relative to the working folder."""

    players: tuple[str, ...] = names("runs (all their checkpoints), checkpoints, random, uci:COMMAND")
    boards: tuple[str, ...] = names("each rated on its own (none: what the first checkpoint learnt on)", default=())
    every: int = num("of a run, every k-th iteration and the last", default=1, low=1)
    simulations: int = num("search simulations a ply of players that do not say (0: as in their training)", default=0)
    gumbel_scale: float = num("scale of the Gumbel noise of players that do not say (the paper: 1.0)", default=0.0)
    pool: str = program_or_path(
        "reference pool that rates the players: a folder, or its name in eval/pools (none: their own games alone)",
        default="",
    )
    make_pool: bool = key("also write pool.json, by which other ladders rate newcomers", default=False)
    matching: Literal["informative", "all", "paper"] = choice("pairs (paper: Algorithm 2)", default="informative")
    neighbours: int = num("of `all`: only pairs at most so many places apart in players (0: all pairs)", default=0)
    games_per_pair: int = num("games of one meeting, an even number (0: 20; `paper`: 60)", default=0)
    max_games: int = num("games of a board, at most (0: 20 a player; `all` and `paper`: to their end)", default=0)
    target_error: float = num("stop once every standard error is at most this, Elo (0: no such rule)", default=0.0)
    opening_plies: int = num("random plies that open each pair of games (0: the start position)", default=4, high=64)
    openings: str = program_or_path("file of openings instead, a FEN or UCI moves on each line, or PGN", default="")
    seed: int = num("seed of the openings and the noise", default=0)
    part: str = key("which of the openings to play here, as 2/3: those of the second of three machines", default="1/1")
    rows: int = num("games in progress at a time (0: 64; on an accelerator as its memory allows)", default=0)
    method: Literal["bradley-terry", "history", "wls"] = choice("how ratings are estimated", default="bradley-terry")
    anchor: str = key("the player whose rating is anchor_rating; UCI_Elo: engines at its levels", default="")
    anchor_rating: float = num("rating of the anchor, Elo", default=0.0, low=None)

    @model_validator(mode="after")
    def _check_together(self) -> "LadderConfig":
        if not (self.players or self.pool):
            raise ValueError("players must name at least one run, checkpoint or player")
        if len(set(self.boards)) < len(self.boards):
            raise ValueError(f"boards must be different, got {', '.join(self.boards)}")
        if self.games_per_pair % 2:
            raise ValueError("games_per_pair must be even, as each opening is played both ways")
        found = re.fullmatch(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", self.part)
        if not found or int(found[1]) > int(found[2]):
            raise ValueError(f"part must be a number and how many there are, such as 2/3, got {show(self.part)}")
        if self.pool:
            self._check_pool()
        is_pool = self.anchor and self.openings and self.method == "bradley-terry" and "random" not in self.players
        if self.make_pool and not is_pool:
            raise ValueError("make_pool needs an anchor, a file of openings, bradley-terry, and no random mover")
        if self.neighbours and self.matching != "all":
            raise ValueError(f'neighbours is of matching "all", got {show(self.matching)}')
        if self.anchor.startswith("uci:"):
            raise ValueError(f"anchor must be a player's name, as in ratings.csv, got the spec {show(self.anchor)}")
        if self.anchor in ("", "UCI_Elo") and self.anchor_rating:
            raise ValueError("anchor_rating must be 0 without an anchor and with UCI_Elo, whose levels are ratings")
        return self

    def _check_pool(self) -> None:
        others = ("anchor", "anchor_rating", "openings", "make_pool", "neighbours")
        given = [name for name in others if getattr(self, name)]
        if given:
            raise ValueError(f"{given[0]} must not be given with a pool, which has members, openings and an anchor")
        if self.matching == "paper" or self.method != "bradley-terry" or len(self.boards) > 1:
            raise ValueError("a pool rates players of one board by bradley-terry, matching informative or all")
        if self.target_error and not self.max_games:
            raise ValueError("target_error with a pool needs max_games, as the pool's own error may be larger")
