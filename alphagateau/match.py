"""Matches as a user asks for them: players in, a table of scores out."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from alphagateau import checkpoint
from alphagateau.arena import MatchResult, play_match
from alphagateau.config import Experiment
from alphagateau.contest import Player, random_player
from alphagateau.entrants import board_of, load_player, load_weights, match_search, newest
from alphagateau.games import get_game
from alphagateau.matching import sprt
from alphagateau.openings import make_openings, read_openings
from alphagateau.pgn import to_pgn
from alphagateau.rundir import read_final


class Score(NamedTuple):
    """One player's result against another."""

    player: str
    opponent: str
    wins: int
    draws: int
    losses: int
    unfinished: int

    @property
    def score(self) -> float:
        """Points a finished game, a draw as half."""
        games = self.wins + self.draws + self.losses
        return (self.wins + self.draws / 2) / games if games else float("nan")


def score_of(player: str, opponent: str, result: MatchResult) -> Score:
    return Score(player, opponent, result.wins, result.draws, result.losses, result.unfinished)


def print_scores(scores: Iterable[Score], title: str) -> None:
    """A table on standard output."""
    table = Table(title=title, title_justify="left")
    for name in ("player", "opponent"):
        table.add_column(name)
    for name in ("games", "wins", "draws", "losses", "unfinished", "score"):
        table.add_column(name, justify="right")
    for s in scores:
        games = s.wins + s.draws + s.losses
        counts = (games, s.wins, s.draws, s.losses, s.unfinished)
        table.add_row(s.player, s.opponent, *map(str, counts), f"{s.score:.3f}")
    console = Console()
    console.print(table) if console.is_terminal else Console(width=120).print(table)


def run_match(spec_a: str, spec_b: str, options: dict[str, str | None]) -> int:
    """`alphagateau match`: plays, prints the table, writes PGN; 1 if games are missing a result.

    Raises MatchError, PlayerError, CheckpointError, EngineError: each one sentence.
    """
    num_games = _number(options, "games", 64)
    if num_games % 2:
        raise MatchError(f"--games must be even, as each opening is played with both colors, got {num_games}")
    simulations = _number(options, "simulations", 0) or None
    game = get_game(board_of([spec_a, spec_b], options["game"]))
    a, b = (load_player(spec, game.name, simulations) for spec in (spec_a, spec_b))
    seed = _number(options, "seed", 0)
    if options["openings"]:
        openings = read_openings(game, options["openings"])
    else:
        openings = make_openings(game, num_games // 2, _number(options, "opening-plies", 4), seed)
    test = _sprt_bounds(options["sprt"])
    result = play_match(
        game,
        a.player,
        b.player,
        openings,
        seed=seed,
        num_rows=_number(options, "rows", 64),
        is_decided=test and (lambda counts: sprt(counts, *test).decision != "continue"),
    )
    print_scores([score_of(a.name, b.name, result)], f"{game.name}")
    print(
        f"openings by points of {a.name} (0, 1/2, 1, 3/2, 2): {' '.join(map(str, result.pentanomial))}; "
        f"{result.moves} moves, {result.live_fraction:.0%} of searched rows live"
    )
    if test:
        print(sprt(result.pentanomial, *test))
    if options["pgn"]:
        text = "\n\n".join(to_pgn(played.record) for played in result.records)
        checkpoint.write_text(Path(options["pgn"]), text + "\n")
    for name, failure in result.failures.items():
        print(f"{name} left the match: {failure}")
    return 1 if result.unfinished and not test else 0


class MatchError(ValueError):
    """A match that cannot be played as asked; one sentence."""


def _number(options: dict[str, str | None], name: str, default: int) -> int:
    text = options[name]
    if text is None:
        return default
    if not text.isdecimal():
        raise MatchError(f"--{name} must be a whole number, got {text!r}")
    return int(text)


def _sprt_bounds(text: str | None) -> tuple[float, float] | None:
    """(elo0, elo1) of "0,10"."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise MatchError(f"--sprt must be two Elo differences such as 0,10, got {text!r}") from None
    return low, high


def final_match(experiment: Experiment, run: Path, variables: Any, should_stop) -> list[Score] | None:
    """The last network against iteration 0 and the random mover, also in the run's results.json; None if stopped.

    All networks search alike, without noise, from the same openings; each opening is played with both colors.
    """
    rule, path = experiment.evaluation, run / "results.json"
    identity = checkpoint.weights_hash(variables)
    known = read_final(run)
    if known and known["weights_hash"] == identity and known["evaluation"] == list(vars(rule).values()):
        return [Score(*row) for row in known["scores"]]
    game = get_game(experiment.game)
    simulations = rule.num_simulations or experiment.selfplay.num_simulations
    considered = experiment.selfplay.max_num_considered_actions
    search = match_search(game.name, experiment.network, simulations, considered)
    first = load_weights(newest(run / "checkpoints" / "0"), game.name)
    last = Player(f"iteration {experiment.num_iterations}", search, variables)
    openings = make_openings(game, rule.num_games // 2, rule.opening_plies, experiment.seed)
    scores = []
    for opponent in (Player("iteration 0", search, first), random_player()):
        result = play_match(game, last, opponent, openings, seed=experiment.seed, should_stop=should_stop)
        if should_stop():
            return None
        scores.append(score_of(last.name, opponent.name, result))
    record = {
        "weights_hash": identity,
        "evaluation": list(vars(rule).values()),
        "simulations": simulations,
        "scores": scores,
    }
    checkpoint.write_text(path, json.dumps(record, indent=1))
    return scores
