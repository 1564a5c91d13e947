"""Plays the match that ends a run, and prints its table of scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Column

from alphagateau.config import Experiment
from alphagateau.games.pgn.pgn import Identity
from alphagateau.games.variants import get_game
from alphagateau.matches.match import games_to_pgn, play_match
from alphagateau.matches.match_games import Match
from alphagateau.matches.openings import make_openings
from alphagateau.matches.player_specs import match_config, match_search
from alphagateau.matches.players import Player, random_player
from alphagateau.networks.trained import load_weights, player_search_name
from alphagateau.ratings.sprt import strength
from alphagateau.runs import checkpoint, files
from alphagateau.runs.logging.progress import print_results, say
from alphagateau.runs.newest import find_newest
from alphagateau.runs.run_folder import RunError
from alphagateau.runs.run_record import read_final_match


class Score(NamedTuple):
    """One player's result against another; `pairs` [5]: openings by its points in them, empty if that is not known."""

    player: str
    opponent: str
    wins: int
    draws: int
    losses: int
    unfinished: int
    pairs: Sequence[int] = ()

    @property
    def score(self) -> float:
        """Points a finished game, a draw as half."""
        games = self.wins + self.draws + self.losses
        return (self.wins + self.draws / 2) / games if games else float("nan")


def print_scores(scores: Sequence[Score], title: str) -> None:
    """A table on standard output, and a line a pair on how much stronger its player is."""
    unfinished = ["unfinished"] if any(s.unfinished for s in scores) else []
    columns = ("player", Column("opponent"), "games", "wins", "draws", "losses", *unfinished, "score")
    rows = []
    for s in scores:
        games = s.wins + s.draws + s.losses
        shown = f"{s.score:.3f}" if games else "-"
        counts = (games, s.wins, s.draws, s.losses, s.unfinished)
        rows.append((s.player, s.opponent, *counts[: len(columns) - 3], shown))
    print_results(title, columns, rows)
    for s in scores:
        if any(s.pairs):
            say(f"{s.player} against {s.opponent}: {strength(s.pairs)}")


def known_scores(experiment: Experiment, run: Path, variables: Any) -> list[Score]:
    """The scores of the match at the end, if it was played by these weights as in the experiment; else none."""
    known, identity = read_final_match(run), checkpoint.weights_hash(variables)
    if not known or (known["weights_hash"], known["evaluation"]) != (identity, _wanted(experiment)):
        return []
    pairs = [row["pairs"] for row in known.get("strengths", ())] or [()] * len(known["scores"])  # of earlier versions
    return [Score._make([*row, of_row]) for row, of_row in zip(known["scores"], pairs, strict=True)]


def _wanted(experiment: Experiment) -> list[Any]:
    """The values of [evaluation]; a switch that is off changes no match."""
    return [value for value in vars(experiment.evaluation).values() if value is not False]


def final_match(experiment: Experiment, run: Path, variables: Any, should_stop) -> list[Score] | None:
    """The last network against iteration 0 and the random mover; None if stopped.

    All networks search alike, without noise, from the same openings; each opening is played with both colors. The
    run's results.json has the scores, results.pgn the games. Raises RunError if a player leaves it.
    """
    game, rule = get_game(experiment.game), experiment.evaluation
    simulations = rule.num_simulations or experiment.search.num_simulations
    wanted = {**vars(experiment.search), "num_simulations": simulations}
    config = match_config(wanted | ({"average_mirrors": True} if rule.average_mirrors else {}))
    search = match_search(game.name, experiment.network, config)
    start, weights = checkpoint.open_checkpoint(run / "checkpoints" / "0"), checkpoint.weights_hash(variables)
    newest = find_newest(run)  # num_iterations may have been lowered since, also within an iteration
    identity = Identity(run.name, newest.manifest["iteration"], weights, player_search_name(config))
    of_first = identity._replace(iteration=0, weights=start.manifest["weights_hash"])
    first = Player("iteration 0", search, load_weights(start, game.name), of_first)
    last = Player(f"iteration {newest.path.name}", search, variables, identity)
    openings = make_openings(game, rule.num_games // 2, rule.opening_plies, experiment.seed)
    scores, games = [], ""
    for opponent in (first, random_player()):
        result = play_match(game, Match(last, opponent, openings, experiment.seed), should_stop=should_stop)
        if should_stop():
            return None
        for name, why in result.statistics.failures.items():
            raise RunError(f"{name} left the match at the end: {why}")
        scores.append(Score(last.name, opponent.name, *result[:5]))
        games += games_to_pgn(result.records, run.name)
    record = {
        "weights_hash": weights,
        "evaluation": _wanted(experiment),
        "simulations": simulations,
        "scores": [score[:6] for score in scores],
        "strengths": [{"pairs": score.pairs, **strength(score.pairs)._asdict()} for score in scores],
    }
    files.write_text(run / "results.pgn", games)
    files.write_text(run / "results.json", files.to_json(record))
    return scores
