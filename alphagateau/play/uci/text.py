"""The text of the UCI protocol: commands and options read, lines of information written.

score cp    ln((1 + v) / (1 - v)) / 0.00368208 of the value v: the centipawns whose chance of winning is (1 + v) / 2
            on Lichess
score mate  moves to a mate that the tree proves, negative if it is against the player to move
wdl         of a value alone, as if a win took two tosses of a coin that falls right with p = (1 + v) / 2: a draw is
            one of each, and wins + draws / 2 = p
depth       the length of the principal variation; `go depth D` is 2 ** (D + 3) simulations, D up to 20
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from alphagateau.games.entries import GAMES
from alphagateau.games.scores import centipawns

if TYPE_CHECKING:  # `uci` is answered before what searches is imported
    from alphagateau.search.growing.tree_lines import Line

NUMBERS = ("nodes", "movetime", "wtime", "btime", "winc", "binc", "movestogo", "depth", "mate")
FLAGS = ("infinite", "ponder")
LIMIT_STRENGTH, UCI_ELO = "UCI_LimitStrength", "UCI_Elo"
MAX_DEPTH = 20

Value = int | bool | str


class Option(NamedTuple):
    """An option of the engine: a number, on or off, or one of several words."""

    default: Value
    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()


def variants() -> dict[str, str]:
    """The boards by their UCI_Variant."""
    return {entry.uci_variant: name for name, entry in GAMES.items()}


def options() -> dict[str, Option]:
    """The options by name, with the boards that are registered."""
    return {
        "Simulations": Option(800, 1, 10_000_000),  # of a `go` without limits
        "Temperature": Option(0, 0, 1000),  # in hundredths
        "MultiPV": Option(1, 1, max(entry.max_legal_moves for entry in GAMES.values())),
        "Seed": Option(0, 0, 2**31 - 1),  # of what Temperature samples
        "Device": Option("auto", choices=("auto", "cpu", "gpu", "tpu")),  # where the network is; auto: as JAX chooses
        "Move Overhead": Option(50, 0, 5000),  # milliseconds of each move that are lost on the way; GUIs know this name
        "Hash": Option(256, 16, 65536),  # megabytes of the tree
        "UCI_ShowWDL": Option(False),
        LIMIT_STRENGTH: Option(False),
        UCI_ELO: Option(10_000, -10_000, 10_000),  # within the levels that are measured; above them, the highest
        "UCI_Variant": Option("chess", choices=tuple(variants())),
        "UCI_Chess960": Option(False),  # the board chess960 in place of chess
        "Threads": Option(1, 1, 1024),  # GUIs set it unasked; XLA has threads of its own, so it changes nothing
        "Ponder": Option(False),  # nothing either: `go ponder` is understood in any case
    }


class Go(NamedTuple):
    """A `go`: its numbers, as they were given, its moves, and what was wrong with it."""

    numbers: dict[str, int]
    moves: tuple[str, ...]
    complaints: tuple[str, ...]


def shown(text: str) -> str:
    """A piece of input, fit for a line of output."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def describe_option(name: str, option: Option) -> str:
    """The line that declares an option."""
    if option.choices:
        kind = f"combo default {option.default}" + "".join(f" var {choice}" for choice in option.choices)
    elif isinstance(option.default, bool):
        kind = f"check default {str(option.default).lower()}"
    else:
        kind = f"spin default {option.default} min {option.low} max {option.high}"
    return f"option name {name} type {kind}"


def read_option(text: str) -> tuple[str, Value]:
    """(name, value) of what follows `setoption`. Raises ValueError, in one sentence."""
    match = re.fullmatch(r"\s*name\s+(.*?)(?:\s+value(?:\s+(.*?))?)?\s*", text)
    if not match:
        raise ValueError(f"setoption {shown(text.strip())} was given: expected setoption name NAME value VALUE")
    given, value = match[1].replace(" ", "").lower(), match[2] or ""
    known = options()
    name = next((name for name in known if name.replace(" ", "").lower() == given), None)
    if name is None:
        raise ValueError(f"there is no option {shown(match[1])}: expected one of {', '.join(known)}")
    option = known[name]
    if option.choices or isinstance(option.default, bool):
        choices = option.choices or ("true", "false")
        if (found := next((choice for choice in choices if choice.lower() == value.lower()), None)) is None:
            raise ValueError(f"option {name} is {shown(value)}: expected one of {', '.join(choices)}")
        return name, found if option.choices else found == "true"
    if not re.fullmatch(r"-?\d{1,12}", value) or not option.low <= int(value) <= option.high:
        raise ValueError(f"option {name} is {shown(value)}: expected {option.low} to {option.high}")
    return name, int(value)


def read_position(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """(FEN or None for the start, moves) of what follows `position`. Raises ValueError, in one sentence."""
    kind, *rest = words or ("",)
    if kind not in ("startpos", "fen"):
        raise ValueError(f"position {shown(kind)} was given: expected startpos or fen")
    end = rest.index("moves") if "moves" in rest else len(rest)
    fields, moves = rest[:end], rest[end + 1 :]
    if kind == "fen" and not fields:
        raise ValueError("position fen was given without a FEN: expected one")
    if kind == "startpos" and fields:
        raise ValueError(f"position startpos {shown(fields[0])} was given: expected moves")
    return None if kind == "startpos" else " ".join(fields), moves


def read_go(words: Sequence[str]) -> Go:
    """What follows `go`; what cannot be understood is left out and complained of."""
    numbers, moves, complaints = {}, [], []
    keys, left = {*NUMBERS, *FLAGS, "searchmoves"}, list(reversed(words))
    while left:
        key = left.pop()
        if key in NUMBERS:
            text = left.pop() if left else ""
            if re.fullmatch(r"-?\d{1,15}", text):
                numbers[key] = int(text)
            else:
                complaints.append(f"go {key} {shown(text)} was given: expected a whole number")
        elif key == "searchmoves":
            while left and left[-1] not in keys:
                moves.append(left.pop())
        elif key not in FLAGS:
            complaints.append(f"go {shown(key)} was given: expected one of {', '.join([*NUMBERS, *FLAGS])}")
    return Go(numbers, tuple(moves), tuple(complaints[:3]))


def simulations_of(go: Go) -> int | None:
    """The simulations of `nodes` and `depth`; None if neither is given."""
    limits = [max(1, go.numbers["nodes"])] if "nodes" in go.numbers else []
    if "depth" in go.numbers:
        limits.append(2 ** (min(max(go.numbers["depth"], 1), MAX_DEPTH) + 3))
    return min(limits, default=None)


def wdl(value: float) -> tuple[int, int, int]:
    """Wins, draws and losses of a value, in thousandths that sum to 1000."""
    expected = (1 + min(max(value, -1.0), 1.0)) / 2
    wins, losses = round(1000 * expected**2), round(1000 * (1 - expected) ** 2)
    return wins, 1000 - wins - losses, losses


def score_text(line: "Line", with_wdl: bool) -> str:
    """The score of a line, with its wins, draws and losses if they are wanted."""
    if line.mate is None:
        text = f"score cp {centipawns(line.value)}"
    else:
        text = f"score mate {(line.mate + 1) // 2 if line.mate > 0 else -(-line.mate // 2)}"
    return text + (" wdl {} {} {}".format(*wdl(line.value)) if with_wdl else "")


def info_text(line: "Line", moves: Sequence[str], with_wdl: bool, counts: Mapping[str, int]) -> str:
    """A line of information; `counts` come before the principal variation, in their order."""
    numbers = " ".join(f"{name} {count}" for name, count in counts.items())
    return f"info depth {len(moves)} {score_text(line, with_wdl)} {numbers} pv {' '.join(moves)}"
