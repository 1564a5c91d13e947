"""Files that are whole or not there."""

import errno
import os
import shutil
import sys
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Replaces a file at once: a reader or a kill sees the old text or the new, never a part; several may do it.

    By hand because it is a few lines, and the standard library has none that also syncs the folder's list of names.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync(path.parent)


def write_result(path: Path, text: str) -> None:
    """`write_text` of what was asked for at the start of long work: its folder is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def remove_half_written(folder: Path) -> None:
    """Removes what killed processes left of `write_text` in a folder, for one who knows that nobody writes there."""
    for path in folder.glob(".*.tmp"):
        if path.is_file():
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Has a file or a folder's list of names on disk before it returns, where a folder can be synced at all."""
    if sys.platform == "win32":  # opens no folder
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL or not path.is_dir():  # EINVAL: a file system that syncs no folders
            raise
    finally:
        os.close(handle)


def free_space(folder: Path) -> int:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
