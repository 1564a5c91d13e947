"""GATEAU beside peers, by CPU time of one core, in turns in one process: python benchmarks/peers.py PATH [--quick]

PATH is a checkout of the code of the AlphaGateau paper (Rigaux and Kashima 2024), which you bring: it is imported from
where it lies. The peers, each left out with a sentence where it is not installed or does not run:

* authors: that code, with the packages of this environment (`peer_programs/authors.py`)
* GATv2: PyTorch Geometric's layers with edge features (`peer_programs/geometric.py`)
* OpenVINO: our forward pass, converted with our weights (`peer_programs/converted.py`)
* ours with rms: our forward pass with RMS in place of batch normalization

Prints a table in Markdown: medians, over the rounds, of the ratio of a peer's CPU time to ours, the lowest and the
highest, and our CPU time. Runs on the first core that it may use (`taskset` chooses another), some ten minutes.
"""

import os

if __name__ == "__main__" and hasattr(os, "sched_setaffinity"):  # before JAX and torch count cores
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import argparse
import dataclasses
import importlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import jax
from peer_programs import authors
from peer_programs.boards import BATCH, BOARDS, Board, Call, Peer
from throughput.games import SIMULATIONS, make_ply_call
from throughput.ratios import frames_of, in_turns

from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.networks.gateau.network import make_gateau
from alphagateau.networks.network import Network
from alphagateau.training.learner import make_learner
from alphagateau.training.losses.policy_value import policy_value_loss
from alphagateau.training.optimizer import make_optimizer

WITH_TORCH = {  # modules of peers, and what they need
    "GATv2": ("peer_programs.geometric", ("torch", "torch_geometric")),
    "OpenVINO": ("peer_programs.converted", ("torch", "openvino")),
}
PACKAGES = ("jax", "flax", "pgx", "mctx", "torch", "torch_geometric", "openvino")
QUICK = 3  # rounds


class Row(NamedTuple):
    """The ratio of a peer's CPU time to ours: its median, lowest and highest; and our seconds."""

    what: str
    peer: str
    ratio: float
    spread: tuple[float, float]
    seconds: float


def our_network(board: Board, kind: str) -> Network:
    return make_gateau(board.game, dataclasses.replace(board.config, normalization=kind))


def our_forward(kind: str, board: Board) -> Call:
    network = our_network(board, kind)
    forward = jax.jit(lambda variables, positions: network.apply(variables, positions, False)[0])
    return partial(forward, network.init(jax.random.key(0)), board.positions)


def our_step(kind: str, board: Board) -> Call:
    network = our_network(board, kind)
    learner = make_learner(board.game, network, policy_value_loss, make_optimizer(1e-3))
    state = learner.init(network.init(jax.random.key(0)))
    return partial(jax.jit(learner.step), state, frames_of(board.game, board.positions))


def our_ply(kind: str, board: Board) -> Call:
    network = our_network(board, kind)
    return make_ply_call(board.game, network, network.init(jax.random.key(0)), board.case)[0]


OURS: dict[str, Callable[[str, Board], Call]] = {"forward": our_forward, "step": our_step, "ply": our_ply}
TITLES = {
    "forward": f"forward, {{}}, batch {BATCH}",
    "step": f"optimizer step, {{}}, batch {BATCH}",
    "ply": f"a ply of self-play, {{}}, {{}} games, {SIMULATIONS} simulations",
}


def say(text: str) -> None:
    print(text, file=sys.stderr)


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def find_peers(path: Path) -> dict[str, Peer]:
    """The peers by name; those that lack a package are left out with a sentence."""
    peers = {"authors": authors.make_peer(path.resolve())}
    for name, (module, needs) in WITH_TORCH.items():
        missing = [package for package in needs if find_spec(package) is None]
        if missing:
            say(f"{name} is left out: {' and '.join(missing)} not installed.")
            continue
        try:
            peers[name] = importlib.import_module(module).make_peer()
        except Exception as error:  # whatever another version raises
            say(f"{name} is left out: {first_line(error)}")
    return peers | {"ours with rms": Peer(partial(our_forward, "rms"))}


def started(what: str, board: Board, peers: dict[str, Peer]) -> dict[str, Call]:
    """The calls of the peers that have this program, each after one call; those that fail are left out."""
    calls = {}
    for name, peer in peers.items():
        if (make := getattr(peer, what)) is None:
            continue
        try:
            call = make(board)
            jax.block_until_ready(call())
            calls[name] = call
        except Exception as error:  # whatever another version raises
            say(f"{name}, {what}, {board.case.name}, is left out: {first_line(error)}")
    return calls


def rows_of(
    what: str, kinds: Sequence[str], seconds: dict[str, list[float]], step_kinds: dict[str, str | None]
) -> list[Row]:
    """The rows of programs that took turns.

    Args:
        kinds: our normalizations, whose seconds stand under "ours KIND".
        step_kinds: of each peer, the normalization that it is compared with; None: each.
    """
    rows = []
    for peer in step_kinds:
        for kind in [step_kinds[peer]] if step_kinds[peer] in kinds else kinds:
            ours = seconds[f"ours {kind}"]
            ratios = [a / b for a, b in zip(seconds[peer], ours, strict=True)]
            name = f"{what}, ours with {kind}" if len(kinds) > 1 else what
            spread = (min(ratios), max(ratios))
            rows.append(Row(name, peer, statistics.median(ratios), spread, statistics.median(ours)))
    return rows


def compare(what: str, board: Board, peers: dict[str, Peer], rounds: int) -> list[Row]:
    """Times a program of ours and of the peers."""
    kinds = board.step_kinds if what == "step" else ("batch",)
    calls = started(what, board, peers)
    step_kinds = {name: peers[name].step_kind for name in calls}
    ours = {f"ours {kind}": OURS[what](kind, board) for kind in kinds}
    seconds = in_turns({**ours, **calls}, rounds, time.process_time)
    return rows_of(TITLES[what].format(board.case.name, board.case.num_games), kinds, seconds, step_kinds)


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| what | peer | peer / ours | ours |", "|---|---|---|---|"]
    for row in rows:
        ratio = f"{row.ratio:.2f} ({row.spread[0]:.2f} to {row.spread[1]:.2f})"
        lines.append(f"| {row.what} | {row.peer} | {ratio} | {row.seconds * 1e3:.1f} ms |")
    return "\n".join(lines)


def versions(path: Path) -> str:
    """Versions of the packages that are installed, and the checkout's commit where it has one."""
    found = [f"{name} {metadata.version(name)}" for name in PACKAGES if find_spec(name) is not None]
    if (path / ".git").exists():
        command = ["git", "-C", str(path), "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        found.append(f"authors' commit {commit or 'unknown'}")
    return ", ".join(found)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, metavar="PATH", help="a checkout of the authors' code")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} rounds of each")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="programs whose names have one of these")
    args = parser.parse_args(words)
    if (fault := authors.check(args.path)) is not None:
        say(fault)
        raise SystemExit(2)
    chosen = [
        (what, board)
        for what in OURS
        for board in BOARDS
        if not args.only or any(text in f"{what} {board.case.name}" for text in args.only)
    ]
    if not chosen:
        say(f"No program's name has {' or '.join(args.only)}: expected {', '.join(OURS)}, 5x5 or 8x8.")
        raise SystemExit(2)
    use_compilation_cache()
    peers, rows = find_peers(args.path), []
    for what, board in chosen:
        rounds = QUICK if args.quick else board.rounds
        rows += compare(what, board, peers, rounds)
        say(f"{what}, {board.case.name}: done, {rounds} rounds")
    print(f"CPU time of one core; {versions(args.path)}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
