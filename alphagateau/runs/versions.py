"""Versions of installed packages."""

import importlib.metadata


def version_of(package: str) -> str | None:
    """The installed version of a package; None if it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def own_version() -> str:
    """Our version in one word, as engines name it; a source tree may be on the path and not installed."""
    return version_of("alphagateau") or "uninstalled"
