"""What each dependency weighs: MiB of its own files, and of those that are installed for its sake alone.

    python benchmarks/dependencies.py

Run it with the Python of an environment in which the package is installed; extras are left out.
"""

from importlib.metadata import distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed(requirements: list[Requirement]) -> set[str]:
    """All packages that are installed for requirements, their own included."""
    found, waiting = (
        set(),
        [(requirement.name, extra) for requirement in requirements for extra in extras_of(requirement)],
    )
    while waiting:
        name, extra = waiting.pop()
        if (key := (canonicalize_name(name), extra)) in found:
            continue
        found.add(key)
        for requirement in map(Requirement, distribution(name).requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(requirement.name, inner) for inner in extras_of(requirement)]
    return {name for name, _ in found}


def extras_of(requirement: Requirement) -> list[str]:
    return ["", *requirement.extras]


def size_of(name: str) -> float:
    """MiB of a package's files, compiled ones included."""
    paths = [path.locate() for path in distribution(name).files or []]
    return sum(path.stat().st_size for path in paths if path.exists()) / 2**20


def main() -> None:
    all_of_it = map(Requirement, distribution("alphagateau").requires or [])
    direct = [line for line in all_of_it if line.marker is None or line.marker.evaluate({"extra": ""})]
    everything = needed(direct)
    print(f"{len(everything)} packages, {sum(map(size_of, everything)):.0f} MiB")
    for requirement in direct:
        alone = everything - needed([other for other in direct if other is not requirement])
        brought = f"{sum(map(size_of, alone)):7.1f} in {len(alone)}" if alone else ""
        print(f"{requirement.name:18} {size_of(requirement.name):7.1f} {brought}")


if __name__ == "__main__":
    main()
