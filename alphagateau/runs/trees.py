"""Writes and reads trees of arrays by orbax."""

import logging
import os
import re
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import jax


def write(path: Path, tree: Any) -> None:
    """Writes a tree as the folder `path`; all processes that have a part of it call this.

    Raises OSError, ValueError, RuntimeError.
    """
    import orbax.checkpoint as ocp

    with _errors_once(), ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(_literal(path), _without_empty(tree))
        checkpointer.wait_until_finished()
        is_alone = jax.process_count() == 1
        if is_alone and (not path.is_dir() or checkpointer.metadata(_literal(path)).item_metadata is None):
            raise RuntimeError(f"orbax wrote less than all of {path} and named no error")


def read(path: Path, abstract: Any, is_shared: bool) -> Any:
    """The tree in the folder `path`, as `abstract` has it; `is_shared`: each process reads what is its own."""
    with _errors_once(), _reader(is_shared) as checkpointer:
        tree = checkpointer.restore(_literal(path), _without_empty(abstract))
    return jax.tree.unflatten(jax.tree.structure(abstract), jax.tree.leaves(tree))


def misfit(path: Path, abstract: Any) -> str:
    """The first array of `abstract` whose shape the folder `path` has otherwise, or has not; "": none is known."""
    stored, wanted = {}, _shapes(abstract)
    with suppress(Exception), _reader(False) as checkpointer:
        stored = _shapes(checkpointer.metadata(_literal(path)).item_metadata.tree)
    for name in sorted(stored.keys() | wanted.keys()) if stored else ():
        if stored.get(name) != wanted.get(name):
            return f"{name} is {stored.get(name, 'not there')}, expected {wanted.get(name, 'nothing')}"
    return ""


def _shapes(tree: Any) -> dict[str, list[int]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): list(leaf.shape) for path, leaf in leaves}


def _reader(is_shared: bool) -> Any:
    import orbax.checkpoint as ocp

    here = jax.process_index()
    processes = {} if is_shared else {"primary_host": here, "active_processes": {here}}
    return ocp.StandardCheckpointer(multiprocessing_options=ocp.options.MultiprocessingOptions(**processes))


@contextmanager
def _errors_once() -> Iterator[None]:
    """Has orbax raise its errors, those of the system as OSError, and print none of them, with a traceback a thread.

    After an error the silence stays, for threads of the failed write go on for a while and have nothing to add.
    """
    loggers = {logging.getLogger(name): logging.getLogger(name).level for name in ("absl", "asyncio")}
    hook, sys.unraisablehook = sys.unraisablehook, partial(_report, sys.unraisablehook)
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    except ValueError as error:
        found = re.search(r"os_error_code='(\d+)'", str(error))
        if found:
            raise OSError(int(found[1]), os.strerror(int(found[1]))) from error
        raise
    sys.unraisablehook = hook
    for logger, level in loggers.items():
        logger.setLevel(level)


def _report(hook: Callable[[Any], None], unraisable: Any) -> None:
    """As `hook`, but for what tensorstore's threads find when the write that they belong to has failed."""
    if str(unraisable.exc_value) != "Event loop is closed":
        hook(unraisable)


def _literal(path: Path) -> Any:
    """The path as orbax takes it, with a `glob` to which the folder's own name is no pattern.

    etils matches the whole path, so that orbax finds nothing of what it wrote below a `[`, `*` or `?`, and names no
    error.
    """
    from etils import epath

    resolved = path.resolve()
    kind: Any = type(epath.Path(resolved))

    class LiteralPath(kind):
        def glob(self, pattern: str) -> Iterator[Any]:
            return (type(self)(found) for found in Path(self).glob(pattern))

    return LiteralPath(resolved)


def _without_empty(tree: Any) -> Any:
    """A tree without the fields and keys that hold no arrays, so that a record may gain such a field."""
    if isinstance(tree, tuple) and hasattr(tree, "_asdict"):
        fields: dict[str, Any] = tree._asdict()  # pyright: ignore[reportAttributeAccessIssue]
        kept = {name: _without_empty(x) for name, x in fields.items() if jax.tree.leaves(x)}
        return type(tree)(**kept) if len(kept) == len(tree) else namedtuple(type(tree).__name__, kept)(**kept)
    if isinstance(tree, dict):
        return {name: _without_empty(x) for name, x in tree.items() if jax.tree.leaves(x)}
    return tuple(map(_without_empty, tree)) if isinstance(tree, tuple) else tree
