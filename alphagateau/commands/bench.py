"""`alphagateau bench`: this machine in, its throughput as ratios out."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from alphagateau.commands.arguments import parse
from alphagateau.commands.compilation import use_compilation_cache


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Measure this machine's throughput, as ratios against the plain reference.

    Each pair is timed in turns in this process; about 7 minutes.

    Example: alphagateau bench --quick --json bench.json
    """

    quick: tyro.conf.FlagCreatePairsOff[bool] = False
    """smaller sizes and fewer rounds, under 2 minutes"""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """also write the rows as JSON"""


def run(words: Sequence[str]) -> int:
    """Prints the table."""
    arguments = parse(Arguments, words, "bench")
    use_compilation_cache()
    from alphagateau.commands.throughput import measure, print_rows, write_rows

    rows = measure(arguments.quick, lambda name: print(f"measured: {name}", file=sys.stderr))
    print_rows(rows)
    if arguments.json:
        write_rows(rows, arguments.json)
    return 0
