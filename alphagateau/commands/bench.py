"""Measures this machine's throughput, as ratios, where the project is checked out."""

import dataclasses
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import tyro

import alphagateau
from alphagateau.cli.arguments import UsageError, number
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import JSON
from alphagateau.config.records import show

PROGRAMS = Path(alphagateau.__file__).parents[1] / "benchmarks" / "throughput"
GROUPS = (
    *("games", "network", "training", "selfplay", "search", "minimax"),
    *("compilation", "memory", "chessformer", "data", "all"),
)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Measure this machine's throughput, as ratios against a plain reference and pgx.

    The two programs of a ratio take turns in this process. docs/performance.md explains the references. What is timed
    lies in benchmarks/throughput/ of a checkout, and does not come with an installed package.

    Example: alphagateau bench training selfplay --json bench.json
    """

    what: tyro.conf.Positional[tuple[str, ...]] = ("games", "network", "memory")
    """games, network, training, selfplay, search, minimax, compilation, memory, chessformer, data, or all"""
    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """3 rounds instead of 7"""
    cpu_devices: Annotated[int, number(int, 1)] = 1
    """devices that a CPU counts as; minimax divides its games among them, the others use the first"""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), JSON] = None
    """also write the table as JSON"""


def run(arguments: Arguments) -> int:
    """Prints the table. Raises UsageError without a checkout."""
    for name in arguments.what:
        if name not in GROUPS:
            raise UsageError(f"bench measures one of {', '.join(GROUPS)}, got {show(name)}")
    if not PROGRAMS.is_dir():
        raise UsageError(f"bench runs in a checkout of the project: what it times would lie in {PROGRAMS}")
    use_compilation_cache()
    from alphagateau.distributed.mesh import choose_platform

    choose_platform("auto", arguments.cpu_devices)
    sys.path.insert(0, str(PROGRAMS.parent))
    groups, ratios = import_module("throughput.rows").ROWS, import_module("throughput.ratios")
    rows = []
    for name in groups if "all" in arguments.what else dict.fromkeys(arguments.what):
        for row in groups[name](3 if arguments.quick else 7):
            rows.append(row)
            print(f"measured: {row.name}: {row.ratio:.2f}", file=sys.stderr)
    ratios.print_rows(rows)
    if arguments.json:
        ratios.write_rows(rows, arguments.json)
    return 0
