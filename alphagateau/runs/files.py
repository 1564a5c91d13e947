"""Files that are whole or not there."""

import errno
import hashlib
import json
import math
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str) -> None:
    """Replaces a file at once: a reader or a kill sees the old text or the new, never a part; several may do it.

    OSError names the file, and on a full disk what it needed and what was free. What a link leads to, or a device, is
    written in place. By hand because the standard library has none that also syncs the folder's list of names.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):  # such as /dev/stdout, which is no file to replace
        path.write_text(text, encoding="utf-8")
        return
    with replacing(path, len(text.encode())) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def append_text(path: Path, text: str) -> None:
    """The text is on disk when this returns; OSError as of `write_text`, perhaps with a part of it written."""
    with filling(path, len(text.encode())), path.open("a", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replacing(path: Path, needed: int = 0) -> Iterator[Path]:
    """A name under which to write a file's new content, of `needed` bytes; the file has it at the end of the block.

    After an error nothing is left of it, and the file is as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with filling(path, needed):
        try:
            yield temporary
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync(path.parent)


@contextmanager
def filling(path: Path, needed: int = 0) -> Iterator[None]:
    """Raises each OSError of the block as one of `path`, on a full disk with the room needed and free."""
    free = free_space(path.parent)
    try:
        yield
    except OSError as error:
        why = reason(error)
        if error.errno == errno.ENOSPC:
            amount = f"about {megabytes(needed)}" if needed > free else f"more than {megabytes(free)}"
            why += f" ({amount} needed, {megabytes(free)} free)"
        raise OSError(error.errno, why, str(path)) from error


def write_result(path: Path, text: str) -> None:
    """`write_text`, in a folder that is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def write_json(path: Path, value: Any, indent: int | None = 1) -> None:
    """`write_result` of a value as JSON, with a line end."""
    write_result(path, to_json(value, indent) + "\n")


def to_json(value: Any, indent: int | None = 1) -> str:
    """A value as JSON: a NamedTuple as an object; a number that is not finite, which JSON has none of, as null."""
    return json.dumps(_plain(value), indent=indent)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_bounded(path: Path, most: int) -> str:
    """The text of a plain file of at most so many bytes. Raises OSError, and ValueError: a pipe would wait for ever."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > most:
        raise ValueError(f"it has {megabytes(found.st_size)}, expected a plain file of at most {megabytes(most)}")
    return path.read_text(encoding="utf-8")


def remove_half_written(folder: Path) -> None:
    """Removes half-written files of killed processes from a folder in which nobody writes."""
    for path in folder.glob(".*.tmp"):
        if path.is_file():
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Syncs a file, or a folder's list of names where a folder can be synced."""
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
    """Bytes free where a folder is, or will be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


def reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
