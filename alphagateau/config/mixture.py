"""Splits an experiment of several boards into one experiment a board."""

import dataclasses
import re
from typing import Any, TypeVar

from alphagateau.config.records import show

SEEDS_APART = 2**16  # between those of a run's boards, whose games draw nothing alike
T = TypeVar("T")  # an Experiment, which imports this


def parse_boards(text: str, name: str) -> dict[str, float]:
    """Shares by board, of "gardner_chess 2, chess 1" or "none"; ValueError opens with the key's `name`."""
    if text == "none":
        return {}
    found: dict[str, float] = {}
    for part in text.split(","):
        words = re.fullmatch(r"\s*(\w+) ([0-9]{0,6}\.?[0-9]{1,6})\s*", part)
        if not words or words[1] in found or not float(words[2]):
            raise ValueError(
                f'{name} must be boards and their parts, such as "gardner_chess 2, chess 1", got {show(text)}'
            )
        found[words[1]] = float(words[2])
    return {board: part / sum(found.values()) for board, part in found.items()}


def board_experiments(experiment: T) -> tuple[T, ...]:
    """An Experiment a board of a run, with its part of games and window. Raises ValueError unless they divide."""
    whole: Any = experiment
    shares = parse_boards(whole.selfplay.boards, "selfplay.boards") if whole.selfplay else {}
    if not shares:
        return (experiment,)
    return tuple(_of_board(whole, place, board, share) for place, (board, share) in enumerate(shares.items()))


def _of_board(whole: Any, place: int, board: str, share: float) -> Any:
    games, shares = share * whole.selfplay.num_games, whole.num_shares
    num_games = round(games)
    if abs(games - num_games) > 1e-6 or num_games % shares or not num_games:
        raise ValueError(
            f"selfplay.boards gives {board} {games:g} of {whole.selfplay.num_games} games, expected a multiple of "
            f"{shares}, num_shares"
        )
    size = int(share * whole.window.size) // shares * shares
    if size < whole.training.batch_size:
        raise ValueError(
            f"training.batch_size ({whole.training.batch_size}) must be at most {size}, the part of window.size that "
            f"selfplay.boards gives {board}"
        )
    return dataclasses.replace(
        whole,
        game=board,
        seed=(whole.seed + place * SEEDS_APART) % 2**31,
        selfplay=dataclasses.replace(whole.selfplay, boards="none", num_games=num_games),
        window=dataclasses.replace(whole.window, size=size),
    )
