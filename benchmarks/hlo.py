"""The text of a compiled program in, its kernels and the bytes that they move out.

Kernels are the instructions of the scheduled program that do work: fusions, copies, library calls and the like. A
device may launch several of them at once as a graph, so launches may be fewer.
"""

import re
from typing import NamedTuple

NOT_KERNELS = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id"}
NOT_KERNELS |= {"while", "call", "async-start", "async-done", "async-update"}
BITS = {"pred": 8, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "f16": 16, "bf16": 16, "s32": 32}
BITS |= {"u32": 32, "f32": 32, "s64": 64, "u64": 64, "f64": 64}


class Loop(NamedTuple):
    """A loop of a program, and the kernels of one turn, those of its inner loops left out."""

    depth: int  # 0: in no other loop
    trips: int | None  # None: known only at run time
    kernels: int
    bytes: int  # of these kernels' operands and results, each read or written once; of a slice or an update, its own
    name: str


class Instruction(NamedTuple):
    """One line of a computation."""

    name: str
    op: str
    shape: str
    operands: tuple[str, ...]
    line: str


def loops_of(text: str) -> list[Loop]:
    """The whole program as its first Loop, of one turn; then its loops, each before those that it contains."""
    computations, entry = _read(text)
    found: list[Loop] = []

    def walk(name: str, depth: int, trips: int | None, label: str) -> None:
        own = list(_flat(computations, name))
        work = [(i, shapes) for i, shapes in own if i.op not in NOT_KERNELS]
        moved = sum(_moved(i, shapes, computations) for i, shapes in work)
        found.append(Loop(depth, trips, len(work), moved, label))
        for instruction, _ in own:
            if instruction.op == "while":
                trip = re.search(r"known_trip_count\D*(\d+)", instruction.line)
                label = (re.search(r'op_name="([^"]*)"', instruction.line) or [None, ""])[1]
                body = _called(instruction.line, "body")
                walk(body, depth + 1, int(trip[1]) if trip else None, label)

    walk(entry, 0, 1, "")
    return found


def total_kernels(loops: list[Loop], trips_unknown: int = 1) -> int:
    """Kernels of a run, each loop of unknown length making `trips_unknown` turns."""
    total, turns = 0, []
    for loop in loops:
        trips = trips_unknown if loop.trips is None else loop.trips
        turns[loop.depth :] = [trips * (turns[loop.depth - 1] if loop.depth else 1)]
        total += turns[loop.depth] * loop.kernels
    return total


def total_bytes(loops: list[Loop]) -> int:
    """Bytes of a run, as `total_kernels`."""
    return total_kernels([loop._replace(kernels=loop.bytes) for loop in loops])


def _read(text: str) -> tuple[dict[str, list[Instruction]], str]:
    """(the instructions of each computation by its name, the name of the first to run)."""
    computations: dict[str, list[Instruction]] = {}
    name, entry = None, ""
    for line in text.splitlines():
        head = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line)
        if head:
            name = head[2]
            computations[name], entry = [], name if head[1] else entry
        elif line.startswith("}"):
            name = None
        elif name and " = " in line:
            computations[name].append(_instruction(line.strip().removeprefix("ROOT ")))
    return computations, entry


def _instruction(line: str) -> Instruction:
    """`%name = shape op(%operand, ...), ...`; the shape may be a tuple."""
    name, _, rest = line.partition(" = ")
    end, depth = 0, 0
    while rest[end] != " " or depth:
        depth += (rest[end] == "(") - (rest[end] == ")")
        end += 1
    op, _, arguments = rest[end + 1 :].partition("(")
    return Instruction(
        name.lstrip("%"), op, rest[:end], tuple(re.findall(r"%([\w.\-]+)", arguments.partition(")")[0])), line
    )


def _flat(computations: dict[str, list[Instruction]], name: str):
    """(instruction, shapes by name) of a computation and of those that it calls as part of itself."""
    shapes = {i.name: i.shape for i in computations[name]}
    for instruction in computations[name]:
        yield instruction, shapes
        if instruction.op in ("call", "async-start"):
            yield from _flat(computations, _called(instruction.line, "to_apply|calls"))


def _called(line: str, key: str) -> str:
    found = re.search(rf"(?:{key})=%?([\w.\-]+)", line)
    if not found:
        raise ValueError(f"no {key} in the instruction {line[:80]!r}")
    return found[1]


def _moved(kernel: Instruction, shapes: dict[str, str], computations: dict[str, list[Instruction]]) -> int:
    """Bytes that a kernel reads and writes."""
    if kernel.op != "fusion":
        return _bytes(kernel.shape) + sum(_bytes(shapes.get(x, "")) for x in kernel.operands)
    body = computations.get(_called(kernel.line, "calls"), [])
    if not body:
        return _bytes(kernel.shape) + sum(_bytes(shapes.get(x, "")) for x in kernel.operands)
    by_name = {i.name: i for i in body}
    read = sum(_bytes_read(i, body) for i in body if i.op == "parameter")
    results = [by_name[x] for x in body[-1].operands] if body[-1].op == "tuple" else [body[-1]]
    return read + sum(_bytes_written(i, by_name) for i in results)


def _bytes_read(source: Instruction, body: list[Instruction]) -> int:
    """Of a fusion's operand: all of it, unless only slices and rows of it are read, or it is updated in place."""
    total = 0
    for user in body:
        if source.name not in user.operands:
            continue
        is_first = user.operands[0] == source.name
        if user.op == "bitcast":
            total += _bytes_read(user, body)
        elif is_first and user.op in ("slice", "dynamic-slice", "gather"):
            total += _bytes(user.shape)
        elif not (is_first and user.op in ("dynamic-update-slice", "scatter")):
            return _bytes(source.shape)
    return min(total, _bytes(source.shape))


def _bytes_written(result: Instruction, by_name: dict[str, Instruction]) -> int:
    """Of a fusion's result: all of it, unless an operand is updated in place."""
    if result.op == "bitcast":
        return _bytes_written(by_name[result.operands[0]], by_name)
    if result.op in ("dynamic-update-slice", "scatter"):
        return _bytes(by_name[result.operands[1 if result.op == "dynamic-update-slice" else -1]].shape)
    return _bytes(result.shape)


def _bytes(shape: str) -> int:
    """Bytes of a shape's text, of a tuple's parts together."""
    total = 0
    for kind, sizes in re.findall(r"(\w+)\[([\d,]*)\]", shape):
        bits = BITS.get(kind, 0)
        for size in filter(None, sizes.split(",")):
            bits *= int(size)
        total += bits // 8
    return total
