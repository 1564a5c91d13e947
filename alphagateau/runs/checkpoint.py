"""Checkpoints: a RunState to a folder that is either whole or not there, and back.

A checkpoint is `<run>/checkpoints/<name>/`: orbax's files, and `manifest.json` with the schema number, what the
checkpoint is, and a checksum of every file. It is written under another name and renamed when complete, so a
process killed at any moment leaves whole checkpoints only; what damages one afterwards is found by the checksums.

The checksums are ours because orbax does not see damage in its array files: of 12 files with one bit flipped it
restored 12, wrong and without a word. The renaming is ours because it is of all that a checkpoint holds, the manifest
last, where orbax's is of its own files.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding

from alphagateau.config import ConfigError
from alphagateau.config.registers import NotInstalledError
from alphagateau.distributed.processes import everywhere, on_first
from alphagateau.runs import trees
from alphagateau.runs.files import file_hash, filling, read_bounded, reason, remove_half_written, sync, write_text
from alphagateau.runs.manifest import MAX_BYTES, check_manifest

SCHEMA = 3  # raise it when the contents of a checkpoint change
MOST_WEIGHT = 1e12  # a network with larger ones evaluates to NaN
WEIGHTS, TRAINING = "weights", "training"  # the two parts; TRAINING is all that is not WEIGHTS
PUBLISHED = "published"  # key of a manifest: by whom a published checkpoint was trained, and at what cost


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written or read; one sentence for the user, naming the folder."""


class NoCheckpointError(CheckpointError, ValueError):
    """There is no checkpoint as one was asked for; one sentence for the user, naming it."""


class Checkpoint(NamedTuple):
    """A checkpoint on disk whose manifest has been read.

    left_out: the keys of its network and search that name programs and paths; the manifest here is without them.
    is_verified: the files of its weights have been hashed since, and are whole.
    """

    path: Path
    manifest: dict[str, Any]
    left_out: tuple[str, ...] = ()
    is_verified: bool = False

    @property
    def order(self) -> tuple[int, ...]:
        """Its place in the run: (iteration, phase, segment)."""
        return tuple(self.manifest["order"])

    @property
    def run(self) -> Path | None:
        """The folder of the run that wrote it; None: it lies elsewhere, as one that is published."""
        whole = Path(os.path.abspath(self.path))
        path = self.path if self.path.parts[-3:] == whole.parts[-3:] else whole  # typed within the run, as "2" or "."
        folder = path.parent.parent
        is_of_run = path.parent.name == "checkpoints" and (folder / "config.toml").exists()
        return folder if is_of_run and PUBLISHED not in self.manifest else None


def weights_hash(variables: Any) -> str:
    """A SHA-256, in 16 hex digits, of the weights and statistics, their names, shapes and types."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        leaf = np.asarray(leaf)
        digest.update(f"{jax.tree_util.keystr(path)} {leaf.shape} {leaf.dtype}\n".encode())
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()[:16]


def save(folder: Path, name: str, parts: dict[str, Any], manifest: dict[str, Any]) -> Checkpoint:
    """Writes the trees `parts` (by name) and the manifest as `folder/name`; all processes call it, in one folder.

    A process alone tries twice, as threads of orbax's have been seen to end before they write, without a word. Raises
    CheckpointError if the disk is full or read-only; what was there before is untouched.
    """
    target, first, second = folder / name, folder / f".{name}.tmp", folder / f".{name}.again.tmp"
    manifest = {"schema": SCHEMA, **manifest, "parts": list(parts)}

    def write(temporary: Path) -> dict[str, Any]:
        def begin() -> None:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()

        on_first(begin, OSError)
        for part, tree in parts.items():
            trees.write(temporary / part, tree)
        return on_first(lambda: seal(temporary, target, manifest), OSError)

    needed = sum(x.nbytes for x in jax.tree.leaves(parts) if hasattr(x, "nbytes"))
    try:
        with filling(target, needed):
            try:
                return Checkpoint(target, write(first))
            except (ValueError, KeyError, RuntimeError):
                if jax.process_count() > 1:  # the others would not try again
                    raise
            written = write(second)  # elsewhere, as other threads of the first try may go on
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        shutil.rmtree(first, ignore_errors=True)
        shutil.rmtree(second, ignore_errors=True)
        raise CheckpointError(
            f"could not write checkpoint {target}: {reason(error)}; the checkpoints written before are untouched"
        ) from error
    shutil.rmtree(first, ignore_errors=True)
    return Checkpoint(target, written)


def seal(temporary: Path, target: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Makes a folder that holds its parts a checkpoint named `target`; returns its manifest, with their checksums."""
    files = {name: digest for part in manifest["parts"] for name, digest in _checksums(temporary, part)}
    manifest = {**manifest, "files": files}
    for path in temporary.rglob("*"):  # a name may outlive a power loss only if what it names does
        sync(path)
    _write_manifest(temporary, manifest)
    _rename_over(temporary, target)
    sync(target.parent)
    return manifest


def _rename_over(temporary: Path, target: Path) -> None:
    """Gives a folder the name of another; killed in between, `clean` gives the other its name back in a run."""
    aside = target.with_name(f".{target.name}.aside")
    if target.exists():
        shutil.rmtree(aside, ignore_errors=True)
        target.rename(aside)
    temporary.rename(target)
    shutil.rmtree(aside, ignore_errors=True)


def find(folder: Path) -> tuple[list[Checkpoint], list[str]]:
    """The checkpoints of a run, newest first, and one sentence for each folder that is none. Reads manifests only."""
    checkpoints, complaints = [], []
    for path in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else ():
        if path.name.startswith(".") or not path.is_dir():
            continue
        try:
            checkpoints.append(open_checkpoint(path))
        except CheckpointError as error:
            complaints.append(str(error))
    of_run = (found for found in checkpoints if PUBLISHED not in found.manifest)
    return sorted(of_run, key=lambda c: c.order, reverse=True), complaints


def open_checkpoint(path: Path) -> Checkpoint:
    """Reads the manifest of the checkpoint folder `path`, whoever wrote it. Raises CheckpointError."""
    file = path / "manifest.json"
    try:
        manifest = json.loads(read_bounded(file, MAX_BYTES))
        schema, digest = manifest.get("schema"), manifest.pop("checksum", None)
        is_whole = digest == _manifest_checksum(manifest)
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(f"{path} is not a checkpoint: it has no manifest.json") from None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        what = "cannot be read" if isinstance(error, OSError) else "is damaged"
        raise CheckpointError(f"{file} {what}: {reason(error)}") from None
    if schema != SCHEMA:
        raise CheckpointError(f"{path} has checkpoint schema {schema!r:.40}; this version reads {SCHEMA}")
    if not is_whole:
        raise CheckpointError(f"{file} is damaged: its checksum is wrong")
    try:
        known, left_out = check_manifest(manifest)
    except NotInstalledError as error:
        raise CheckpointError(f"{path} needs what is not installed here: {error}") from None
    except ConfigError as error:
        raise CheckpointError(f"{file} is damaged: {error}") from None
    return Checkpoint(path, known, tuple(left_out))


def _manifest_checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps({**manifest, "checksum": _manifest_checksum(manifest)}, indent=1)
    write_text(folder / "manifest.json", text)


def verify(checkpoint: Checkpoint, part: str) -> None:
    """Raises CheckpointError unless every file of `part` is there, whole, and nothing was added."""
    if part == WEIGHTS and checkpoint.is_verified:
        return
    path, expected = checkpoint.path, checkpoint.manifest["files"]
    if part not in checkpoint.manifest["parts"]:
        raise CheckpointError(f"{path} holds no {part}: only the newest checkpoints keep it")
    wanted = {k: v for k, v in expected.items() if k == part or k.startswith(f"{part}/")}
    try:
        found = dict(_checksums(path, part))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {reason(error)}") from error
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found:
            raise CheckpointError(f"{path / name} is missing")
        if name not in wanted:
            raise CheckpointError(f"{path / name} does not belong to the checkpoint")
        if wanted[name] != found[name]:
            raise CheckpointError(f"{path / name} is damaged: its checksum is wrong")


def verify_weights(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint, with the files of its weights hashed if they have not been. Raises CheckpointError."""
    verify(checkpoint, WEIGHTS)
    return checkpoint._replace(is_verified=True)


def load(checkpoint: Checkpoint, part: str, abstract: Any) -> Any:
    """The tree `part`, with the shapes, types and shardings of `abstract`; numpy for numpy. Raises CheckpointError.

    If `abstract` is cut over the devices of several processes, they all call it and each reads what is its own.
    """
    abstract = jax.tree.map(_placed, abstract)
    places = [x.sharding for x in jax.tree.leaves(abstract) if not isinstance(x, np.ndarray)]
    is_shared = not all(place.is_fully_addressable for place in places)
    if is_shared:
        on_first(lambda: verify(checkpoint, part), CheckpointError)
    else:
        verify(checkpoint, part)
    try:
        tree = trees.read(checkpoint.path / part, abstract, is_shared)
    except Exception as error:  # of libraries, which read files that anybody may have written
        why = trees.misfit(checkpoint.path / part, abstract) or reason(error)
        raise CheckpointError(f"{checkpoint.path} does not fit this run's {part}: {why}") from error
    for (path, want), got in zip(jax.tree_util.tree_leaves_with_path(abstract), jax.tree.leaves(tree), strict=True):
        name, why = jax.tree_util.keystr(path), ""
        if (want.shape, want.dtype) != (got.shape, got.dtype):
            why = f"does not fit: {name} is {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
        elif part == WEIGHTS and not (abs(np.asarray(got)) <= MOST_WEIGHT).all():
            why = f"cannot play: its weights {name} are not finite, or beyond {MOST_WEIGHT:g}"
        if why:
            raise everywhere(CheckpointError(f"{checkpoint.path} {why}"))
    if part == WEIGHTS and weights_hash(tree) != checkpoint.manifest["weights_hash"]:
        why = "the weights do not have the hash in its manifest: expected them unchanged"
        raise everywhere(CheckpointError(f"{checkpoint.path}: {why}"))
    return tree


def _placed(x: Any) -> Any:
    """A shape with a sharding, of one local device if it has none; the writer's devices may not be here."""
    if isinstance(x, np.ndarray):
        return x
    return x.update(sharding=x.sharding or SingleDeviceSharding(jax.local_devices()[0]))


def drop_part(checkpoint: Checkpoint, part: str) -> None:
    """Frees the room of one part of a checkpoint that stays whole without it."""
    manifest = json.loads(read_bounded(checkpoint.path / "manifest.json", MAX_BYTES))  # with what readers leave out
    del manifest["checksum"]
    manifest["parts"] = [p for p in manifest["parts"] if p != part]
    manifest["files"] = {k: v for k, v in manifest["files"].items() if not k.startswith(f"{part}/")}
    _write_manifest(checkpoint.path, manifest)
    shutil.rmtree(checkpoint.path / part, ignore_errors=True)


def remove(checkpoint: Checkpoint) -> None:
    """Deletes a checkpoint: renamed first, so that a kill leaves no half of one."""
    hidden = checkpoint.path.with_name(f".{checkpoint.path.name}.old")
    shutil.rmtree(hidden, ignore_errors=True)
    checkpoint.path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def clean(folder: Path) -> None:
    """Restores a name that a killed process left aside, and deletes what it half wrote or half deleted."""
    for path in sorted(folder.glob(".*")) if folder.is_dir() else ():
        target = folder / path.stem[1:]
        if path.suffix == ".aside" and not target.exists():
            path.rename(target)
        elif path.suffix in (".tmp", ".old", ".aside"):
            shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob("*"):  # a manifest, where a part was to go
        remove_half_written(path)


def _checksums(folder: Path, part: str) -> Iterator[tuple[str, list]]:
    """(file below `folder`, [bytes, SHA-256]) of every file of a part, which may be a single one."""
    for path in [folder / part, *sorted((folder / part).rglob("*"))]:
        if path.is_symlink():  # to anywhere, and `publish` would copy what is there
            raise OSError(f"{path.relative_to(folder)} is a link, expected a file or folder of its own")
        if path.is_dir():
            os.listdir(path)  # raises if it may not be read, where `rglob` finds nothing in it
        elif path.is_file():
            yield path.relative_to(folder).as_posix(), [path.stat().st_size, file_hash(path)]
