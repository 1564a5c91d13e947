"""The newest whole checkpoint of a run, for everybody who plays, measures, publishes or begins from its weights."""

import contextlib
import difflib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from alphagateau.config import printable
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import Checkpoint, CheckpointError, NoCheckpointError
from alphagateau.runs.logging import progress

warn_once = lru_cache(progress.warn)


def newest_checkpoint(source: Path, others: Sequence[str] = ()) -> Checkpoint:
    """The checkpoint `source`, or the newest of the run `source` whose weights are whole.

    What is no whole checkpoint is passed over, and programs and paths that its manifest names are left out, each with
    one warning. Raises CheckpointError, with `others` that the user may have meant.
    """
    found = find_newest(source, others)
    if found.left_out:
        warn_left_out(found.run or found.path, found.left_out)
    return found


def warn_left_out(source: Path, names: tuple[str, ...]) -> None:
    """Warns, once, of the keys, as "search.finisher", that are not taken from a checkpoint or a run."""
    options = [name.removeprefix("search.") for name in names if name.startswith("search.")]
    hint = f" To use one, give it yourself, as in PLAYER?{options[0]}=..." if options else ""
    warn_once(
        f"{printable(source)} names a program or a path ({' and '.join(names)}), which is left out: only what you type "
        f"or write may.{hint}"
    )


def find_newest(source: Path, others: Sequence[str] = ()) -> Checkpoint:
    """`newest_checkpoint` without a word on programs, as for the run that this process has just trained."""
    if (source / "manifest.json").exists():
        return checkpoint.open_checkpoint(source)
    found, complaints = checkpoint.find(source / "checkpoints")
    for candidate in found:
        try:
            whole = checkpoint.verify_weights(candidate)
        except CheckpointError as error:
            complaints.append(str(error))
        else:
            for complaint in complaints:
                warn_once(f"passed over: {complaint}")
            return whole
    if complaints:
        others = f" (and {len(complaints) - 1} more)" if complaints[1:] else ""
        raise CheckpointError(f"{source} holds no whole checkpoint that can be read here: {complaints[0]}{others}")
    if _is_player(source):
        raise NoCheckpointError(f"{source} holds no whole checkpoint: it has written none yet")
    near = _nearest(source, others)
    hint = f"; did you mean {near}?" if near else ""
    raise NoCheckpointError(f"{source} holds no whole checkpoint: no such run or checkpoint{hint}")


def _nearest(source: Path, others: Sequence[str]) -> str | None:
    """The run or checkpoint whose name is most like that of `source`, beside it or where runs live."""
    usual = Path("checkpoints")
    if _is_player(usual / source):
        return str(usual / source)
    found = {name: name for name in others}
    with contextlib.suppress(OSError):  # a folder that may not be read
        for folder in (usual, source.parent):
            found |= {path.name: str(path) for path in folder.glob("*") if _is_player(path)}
    near = difflib.get_close_matches(source.name, found, 1)
    return found[near[0]] if near else None


def _is_player(path: Path) -> bool:
    return (path / "manifest.json").exists() or (path / "checkpoints").is_dir()
