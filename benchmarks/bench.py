"""This machine's throughput, as ratios against a plain reference and pgx: python benchmarks/bench.py training selfplay

The two programs of a ratio take turns in this process; docs/performance.md explains the references.
"""

import argparse
import sys
from pathlib import Path

from throughput import ratios
from throughput.rows import ROWS

from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.distributed.mesh import choose_platform

USUAL = ("games", "network", "memory")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help=f"{', '.join(ROWS)} or all; without, {', '.join(USUAL)}")
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 7")
    devices = "devices that a CPU counts as; minimax divides its games among them, the others use the first"
    parser.add_argument("--cpu-devices", type=int, default=1, help=devices)
    parser.add_argument("--json", type=Path, help="also write the table")
    args = parser.parse_args(words)
    if unknown := {*args.what} - {*ROWS, "all"}:
        parser.error(f"{min(unknown)} is not measured: expected {', '.join(ROWS)} or all")
    use_compilation_cache()
    choose_platform("auto", args.cpu_devices)
    rows = []
    for name in ROWS if "all" in args.what else dict.fromkeys(args.what or USUAL):
        for row in ROWS[name](3 if args.quick else 7):
            rows.append(row)
            print(f"measured: {row.name}: {row.ratio:.2f}", file=sys.stderr)
    ratios.print_rows(rows)
    if args.json:
        ratios.write_rows(rows, args.json)


if __name__ == "__main__":
    main()
