"""The time of an iteration on many devices, from measured parts: python benchmarks/scaling_model.py

Prints the table of docs/scaling.md. Every input is a field of Parts or Link, with its source beside it.
"""

import math
from typing import NamedTuple

GAMES, PLIES, WINDOW, BATCH = 256, 512, 1_000_000, 256  # of the paper's learning-speed experiment


class Parts(NamedTuple):
    """What one device and one network do; seconds, bytes."""

    ply_seconds: float = 1282 / PLIES / (GAMES / 8)  # a ply of one game: published, 178 h on 8 RTX A5000
    frame_seconds: float = 720 / (WINDOW / 8)  # a frame of training: published, 100 h on the same
    reduced_bytes: float = 4.22e6  # a step, benchmarks/traffic.py
    reductions: int = 28  # a step, benchmarks/traffic.py
    checkpoint_bytes: float = 1.21e9  # docs/reliability.md
    write_seconds: float = 4.4e-9  # a byte, the slowest of docs/reliability.md


class Link(NamedTuple):
    """What joins the devices. Assumed, not measured."""

    host_devices: int = 8
    inside: float = 25e9  # bytes/s of a device to the next on its host: PCIe 4.0 x16
    between: float = 12.5e9  # bytes/s of a host to the next: 100 Gb/s
    latency: float = 20e-6  # seconds a reduction a hop


PARTS, LINK = Parts(), Link()


class Iteration(NamedTuple):
    """Seconds of one iteration."""

    selfplay: float
    training: float
    reducing: float
    checkpoint: float

    @property
    def total(self) -> float:
        return sum(self)


def reduce_seconds(num_devices: int, num_bytes: float, link: Link) -> float:
    """A ring all-reduce: each device sends 2 (n - 1) / n of the bytes in 2 (n - 1) hops; its slowest link decides."""
    if num_devices == 1:
        return 0.0
    speed = link.inside if num_devices <= link.host_devices else link.between
    return 2 * (num_devices - 1) / num_devices * num_bytes / speed


def iteration(num_devices: int, growth: int = 1, parts: Parts = PARTS, link: Link = LINK) -> Iteration:
    """One iteration with `growth` times the paper's games, window and batch: the same number of optimizer steps."""
    games, frames, steps = GAMES * growth, WINDOW * growth, WINDOW // BATCH
    one_step = reduce_seconds(num_devices, parts.reduced_bytes, link)
    hops = math.ceil(math.log2(num_devices)) if num_devices > 1 else 0  # of a small reduction, by a tree
    return Iteration(
        selfplay=PLIES * math.ceil(games / num_devices) * parts.ply_seconds,
        training=frames / num_devices * parts.frame_seconds,
        reducing=steps * (one_step + parts.reductions * 2 * hops * link.latency),
        checkpoint=parts.checkpoint_bytes * growth * parts.write_seconds,
    )


def main() -> None:
    print("| devices | growth | self-play | training | all-reduce | checkpoint | iteration | efficiency |")
    print("|---|---|---|---|---|---|---|---|")
    one = iteration(1)
    for num_devices, growth in ((8, 1), (64, 1), (64, 8), (512, 8), (512, 64)):
        now = iteration(num_devices, growth)
        efficiency = one.total * growth / num_devices / now.total
        cells = " | ".join(f"{seconds:,.0f} s" for seconds in (*now, now.total))
        print(f"| {num_devices} | x {growth} | {cells} | {efficiency:.0%} |")


if __name__ == "__main__":
    main()
