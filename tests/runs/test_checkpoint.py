"""Checkpoints: whole or absent, damage found, nothing executed, nothing outside touched, and what is kept."""

import ast
import gc
import json
import os
import pickle
import re
import shutil
import threading
from pathlib import Path

import jax
import numpy as np
import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

import alphagateau
from alphagateau import config
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import TRAINING, WEIGHTS, CheckpointError
from alphagateau.runs.manifest import Manifest
from alphagateau.training import resume

TREE = {"params": {"w": np.arange(12, dtype=np.float32).reshape(3, 4)}}
SMOKE = Path(__file__).parents[2] / "experiments" / "smoke.toml"


def save(
    folder: Path, name: str = "1", symptoms: tuple = (), segments: int = 0, weights: dict = TREE
) -> checkpoint.Checkpoint:
    iteration = int(name.partition("-")[0])
    manifest = {
        "iteration": iteration,
        "order": [iteration, 0, segments],
        "progress": {},
        "symptoms": list(symptoms),
        "game": "gardner_chess",
        "network": {},
        "search": {},
        "weights_hash": checkpoint.weights_hash(weights),
        "parameters": 12,
        "optimizer_steps": 0,
    }
    return checkpoint.save(folder, name, {WEIGHTS: weights, TRAINING: {"window": np.zeros(100)}}, manifest)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """The folder of one checkpoint; tests take copies."""
    return save(tmp_path_factory.mktemp("written")).path


@pytest.fixture
def copy(written, tmp_path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "checkpoints" / "1"))


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_what_is_written_is_read(written):
    tree = checkpoint.load(checkpoint.open_checkpoint(written), WEIGHTS, TREE)
    assert tree["params"]["w"].tolist() == TREE["params"]["w"].tolist()


@pytest.mark.parametrize("name", ["proj [old]", "[", "*", "a?b", "[!a]", "{a,b} %41 #1"])
def test_a_checkpoint_is_read_below_a_folder_whose_name_is_a_pattern(tmp_path, name):
    """A library matched the whole path: training ran to its end, and no checkpoint could be read, moved or not."""
    found = save(tmp_path / name / "checkpoints")
    assert checkpoint.weights_hash(checkpoint.load(found, WEIGHTS, TREE)) == found.manifest["weights_hash"]
    moved = found._replace(path=(tmp_path / name).rename(tmp_path / "plain") / "checkpoints" / "1")
    assert checkpoint.weights_hash(checkpoint.load(moved, WEIGHTS, TREE)) == found.manifest["weights_hash"]


def test_a_disk_that_is_full_is_one_sentence_without_a_libraries_tracebacks(tmp_path, capfd, monkeypatch):
    """Each of orbax's threads logged its own, and tensorstore's found their event loop closed."""
    import tensorstore

    def refuse(*words, **options):
        raise ValueError("RESOURCE_EXHAUSTED: Error writing local file \"x\" [os_error_code='28']")

    monkeypatch.setattr(tensorstore, "open", refuse)
    with pytest.raises(CheckpointError) as caught:
        save(tmp_path)
    said = rf"could not write checkpoint {tmp_path / '1'}: No space left on device \(.* needed, .* free\); the .*"
    assert re.fullmatch(said, str(caught.value))
    assert capfd.readouterr().err == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    "name", ["array_type_handler", "np_type_handler", "write_metadata_after_commits", "async_save"]
)
def test_a_thread_of_orbax_that_ends_before_it_writes_costs_a_second_try(tmp_path, monkeypatch, name, times):
    """One did, once in many thousand writes; that of numpy's arrays left a sealed checkpoint that nobody could read."""
    dead, run = [], threading.Thread.run

    def die(thread: threading.Thread) -> None:
        if thread.name == name and len(dead) < times:
            dead.append(thread)
        else:
            run(thread)

    monkeypatch.setattr(threading.Thread, "run", die)
    weights = jax.tree.map(jax.numpy.asarray, TREE)
    if times == 1:
        found = save(tmp_path, weights=weights)
        assert checkpoint.load(found, WEIGHTS, TREE)["params"]["w"].tolist() == TREE["params"]["w"].tolist()
        assert checkpoint.load(found, TRAINING, {"window": np.ones(100)})["window"].tolist() == [0.0] * 100
    else:
        with pytest.raises(CheckpointError, match=r"could not write checkpoint .*; the checkpoints written before"):
            save(tmp_path, weights=weights)
        assert not (tmp_path / "1").exists()
    assert len(dead) == times
    gc.collect()  # their coroutines go while the warning of them is passed over


def test_a_kill_while_a_checkpoint_is_written_anew_gives_the_old_its_name_back(copy):
    """The first form of `save` deleted the old one first: a run that keeps one checkpoint then had none."""
    folder = copy.parent
    copy.rename(folder / ".1.aside")  # killed between the two renames
    shutil.copytree(folder / ".1.aside", folder / ".1.tmp")
    checkpoint.clean(folder)
    assert names(folder) == ["1"]
    checkpoint.verify(checkpoint.open_checkpoint(copy), TRAINING)
    save(folder)
    shutil.copytree(copy, folder / ".1.aside")  # killed after them
    checkpoint.clean(folder)
    assert names(folder) == ["1"]


def test_a_checkpoint_that_may_not_be_read_is_passed_over_and_is_not_called_damaged(copy, monkeypatch):
    """Its weights were called missing, and a run that went on removed it; its manifest stopped all that is older."""
    save(copy.parent, "2")

    def refuse(path, stat=Path.stat, **named):
        if path.parent.name == "2":
            raise PermissionError(13, "Permission denied")
        return stat(path, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", refuse)
        (older,), (complaint,) = checkpoint.find(copy.parent)
    assert older.path == copy and "2/manifest.json cannot be read: Permission denied" in complaint
    monkeypatch.setattr(os, "listdir", lambda path: (copy / "manifest.json" / "weights").read_bytes())
    with pytest.raises(CheckpointError, match="cannot be read") as caught:
        checkpoint.verify(older, WEIGHTS)
    assert isinstance(caught.value.__cause__, OSError)  # by which a run knows what to keep


def test_a_kill_while_a_part_is_dropped_leaves_nothing_of_the_manifest_that_was_to_be(copy):
    """The half-written file lay in the checkpoint for good: found by one of 222 kills at random times."""
    files = set(copy.iterdir())
    (copy / ".manifest.json.438.tmp").write_text("{", encoding="utf-8")
    checkpoint.clean(copy.parent)
    assert set(copy.iterdir()) == files
    checkpoint.verify(checkpoint.open_checkpoint(copy), TRAINING)


def test_every_file_and_folder_is_on_disk_before_the_checkpoint_has_its_name(tmp_path, monkeypatch):
    """A kill loses nothing that was written; a power loss loses what was not synced, orbax's own files too."""
    synced, unsynced, fsync, rename = set(), [], os.fsync, Path.rename

    def noted_fsync(handle):
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    def noted_rename(path, target):
        if path.suffix == ".tmp":
            unsynced.extend(p for p in (path, *path.rglob("*")) if p.stat().st_ino not in synced)
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    save(tmp_path)
    assert unsynced == []
    assert tmp_path.stat().st_ino in synced


@fuzzed(300)
@given(st.data())
def test_any_damage_of_a_manifest_is_found(written, data):
    """One byte of it changed, or its end cut off: without its own checksum a run went on from wrong counters."""
    file = written / "manifest.json"
    whole = file.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
    damaged = data.draw(st.sampled_from([whole[:place], whole[:place] + bytes([other]) + whole[place + 1 :]]))
    try:
        file.write_bytes(damaged)
        manifest = checkpoint.open_checkpoint(written).manifest
    except CheckpointError as error:
        assert "manifest.json is damaged" in str(error) or "schema" in str(error)
        assert "\n" not in str(error)
    else:
        assert manifest == {k: v for k, v in json.loads(whole).items() if k != "checksum"}
    finally:
        file.write_bytes(whole)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
    max_leaves=6,
)


@fuzzed(300)
@given(st.binary(max_size=40) | ANY_JSON, st.booleans(), st.sampled_from([2, 3, None, "3"]))
def test_any_manifest_is_one_or_is_refused_in_one_sentence(written, content, is_near, schema):
    file = written / "manifest.json"
    whole = file.read_bytes()
    try:
        if is_near and isinstance(content, dict):
            content = {**json.loads(whole), **content, "schema": schema}
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        for found in checkpoint.find(written.parent)[0]:
            checkpoint.verify(found, WEIGHTS)
    except CheckpointError as error:
        assert str(written) in str(error) and "\n" not in str(error)
    finally:
        file.write_bytes(whole)


@fuzzed(500)
@given(st.sampled_from([*config.fields_of(Manifest), "player"]), ANY_JSON)
def test_a_manifest_forged_with_its_right_checksum_can_be_used_or_is_refused_in_one_sentence(written, key, value):
    """Any key of any kind; what stands in it then is what every reader of it expects."""
    file = written / "manifest.json"
    whole = file.read_bytes()
    manifest = {**json.loads(whole), key: value}
    manifest.pop("checksum")
    try:
        checkpoint._write_manifest(written, manifest)
        found = checkpoint.open_checkpoint(written)
    except CheckpointError as error:
        assert str(written) in str(error) and "\n" not in str(error)
    else:
        config.NETWORKS.read(found.manifest["network"])
        assert found.manifest.keys() <= config.fields_of(Manifest).keys()
        assert all(type(n) is int and n >= 0 for n in (*found.order, found.manifest["optimizer_steps"]))
        assert all(isinstance(size, int) for size, _ in found.manifest["files"].values())
    finally:
        file.write_bytes(whole)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"search": {"algorithm": ["gumbel"]}}, "algorithm must be one of .*, got an array"),
        (
            {"search": {"num_simulations": 2**31 - 1}},
            "num_simulations must be an integer from 1 to 65536, got 2147483647",
        ),
        ({"search": {"value_scale": float("nan")}}, "value_scale must be a finite number from 0 to .*, got nan"),
        ({"network": {"num_blocks": 2**31 - 1}}, "num_blocks must be an integer from 1 to 128, got 2147483647"),
        ({"network": {"board_statistics": "nowhere"}}, 'network.board_statistics names "nowhere"'),
        (
            {"files": {"weights/x": 3}},
            "files.weights/x is 3, expected files to be by name within, its size and SHA-256",
        ),
        ({"files": [1, 2]}, "files is an array"),
        ({"iteration": -1}, "iteration is -1, expected iteration to be a whole number, 0 or more"),
        ({"optimizer_steps": float("inf")}, "optimizer_steps is inf"),  # JSON's 1e400
        ({"optimizer_steps": True}, "optimizer_steps is true"),
        ({"parameters": 10**40}, "parameters is a number of more than 30 digits"),
        ({"order": [1, -1, 0]}, "order.1 is -1, expected order to be three whole numbers"),
        ({"weights_hash": "\x1b[2J"}, r'weights_hash is "\\x1b\[2J"'),
        ({"symptoms": ["a\nb"]}, r'symptoms.0 is "a\\nb"'),
        ({"published": {"run": "a", "spent": {"frames": "all"}}}, 'published.spent.frames is "all"'),
        ({"progress": {"segment_size": "3"}}, 'progress.segment_size is "3"'),
    ],
)
def test_absurd_values_of_a_well_sealed_manifest_are_one_sentence(copy, changes, said):
    """Each was a traceback later, an endless loop, or passed."""
    checkpoint._write_manifest(copy, {**checkpoint.open_checkpoint(copy).manifest, **changes})
    with pytest.raises(CheckpointError, match=rf"manifest.json is damaged: .*{said}") as caught:
        checkpoint.open_checkpoint(copy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"game": "shogi"}, 'game is "shogi", expected game to be one of chess, gardner_chess'),
        ({"boards": ["shogi"]}, 'boards.0 is "shogi"'),
        ({"network": {"architecture": "gat"}}, 'architecture must be one of .*, got "gat"'),
        ({"search": {"algorithm": "one_ply"}}, 'algorithm must be one of .*, got "one_ply"'),
        ({"network": {"self": 1}}, 'another version of its network or search .unknown key "self"'),
    ],
)
def test_a_checkpoint_of_a_plug_in_that_is_not_installed_is_not_called_damaged(copy, changes, said):
    checkpoint._write_manifest(copy, {**checkpoint.open_checkpoint(copy).manifest, **changes})
    with pytest.raises(CheckpointError, match=rf"^{copy} needs what is not installed here: {said}"):
        checkpoint.open_checkpoint(copy)


def test_a_manifest_too_large_to_be_one_is_not_read(copy, monkeypatch):
    monkeypatch.setattr(checkpoint, "MAX_BYTES", 10)
    with pytest.raises(CheckpointError, match=r"is damaged: it has .* kB, expected a plain file of at most 0.0 kB"):
        checkpoint.open_checkpoint(copy)


def test_a_manifest_that_is_no_plain_file_is_not_read(copy):
    """One that was a pipe, or /dev/zero, was read for ever."""
    (copy / "manifest.json").unlink()
    (copy / "manifest.json").symlink_to(os.devnull)
    with pytest.raises(CheckpointError, match=r"is damaged: it has 0.0 kB, expected a plain file of at most 10.0 MB"):
        checkpoint.open_checkpoint(copy)


@pytest.mark.parametrize("number", [np.nan, np.inf, -1e30])
def test_weights_that_are_not_finite_are_refused_by_name(tmp_path, number):
    """They loaded as healthy: a ladder rated nobody, an engine answered no move, Python returned NaN."""
    weights = {"params": {"w": np.array([1, number, 2], np.float32)}}
    found = save(tmp_path, weights=weights)
    with pytest.raises(CheckpointError, match=rf"{found.path} cannot play: its weights .*'w'.* are not finite"):
        checkpoint.load(found, WEIGHTS, weights)


def test_weights_that_are_not_those_of_the_manifest_are_refused_wherever_they_are_read(tmp_path, monkeypatch):
    """Only players looked: a run began from them, and named the manifest's hash as its origin."""
    monkeypatch.setattr(checkpoint, "weights_hash", lambda weights: "0" * 16)
    found = save(tmp_path)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="the weights do not have the hash in its manifest"):
        checkpoint.load(found, WEIGHTS, TREE)


@pytest.mark.parametrize("schema", [0, 2, 4, "new", None])
def test_another_schema_is_refused_by_name(copy, schema):
    file = copy / "manifest.json"
    manifest = {**json.loads(file.read_text()), "schema": schema}
    if schema is None:  # as of labels
        del manifest["schema"]
    file.write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=f"has checkpoint schema {schema!r}; this version reads 3"):
        checkpoint.open_checkpoint(copy)


class Bomb:
    """Pickle calls what this returns when it is read."""

    def __reduce__(self):
        return os.mkdir, ("taken",)


@pytest.mark.parametrize("name", ["checkpoint.pkl", "_METADATA", "manifest.ocdbt"])
def test_a_pickled_file_in_a_checkpoint_is_refused_and_not_run(copy, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (copy / WEIGHTS / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(CheckpointError, match=r"does not belong|checksum"):
        checkpoint.load(checkpoint.open_checkpoint(copy), WEIGHTS, TREE)
    assert not (tmp_path / "taken").exists()


def test_a_pickled_file_that_its_manifest_names_is_not_run_either(copy, tmp_path, monkeypatch):
    """A checkpoint made to deceive: its checksums are right."""
    monkeypatch.chdir(tmp_path)
    for name in ("_METADATA", "manifest.ocdbt"):
        (copy / WEIGHTS / name).write_bytes(pickle.dumps(Bomb()))
    manifest = checkpoint.open_checkpoint(copy).manifest
    manifest["files"] |= dict(checkpoint._checksums(copy, WEIGHTS))
    checkpoint._write_manifest(copy, manifest)
    with pytest.raises(CheckpointError, match="does not fit"):
        checkpoint.load(checkpoint.open_checkpoint(copy), WEIGHTS, TREE)
    assert not (tmp_path / "taken").exists()


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"w": jax.ShapeDtypeStruct((3, 5), np.float32)}, "params.w is [3, 4], expected [3, 5]"),
        ({"v": TREE["params"]["w"], **TREE["params"]}, "params.v is not there, expected [3, 4]"),
        ({"v": np.zeros(2, np.float32)}, "params.v is not there, expected [2]"),
    ],
)
def test_an_array_of_another_shape_is_named(copy, wanted, said):
    """It was orbax's advice on arguments of its own functions."""
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load(checkpoint.open_checkpoint(copy), WEIGHTS, {"params": wanted})
    assert str(caught.value) == f"{copy} does not fit this run's weights: {said}"


def test_the_package_has_no_pickle_and_runs_no_data():
    """No such module imported, no such function called, no numpy.load, which could be told to."""
    modules = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml"}
    for path in Path(alphagateau.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found = {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
                assert not modules & {name.partition(".")[0] for name in found}, path
            if isinstance(node, ast.Call):
                called = node.func
                assert not isinstance(called, ast.Name) or called.id not in ("eval", "exec", "compile"), path
                is_numpy_load = isinstance(called, ast.Attribute) and ast.unparse(called) in ("np.load", "numpy.load")
                assert not is_numpy_load, path


@pytest.mark.parametrize(
    "changes",
    [{"files": {"weights/../../../secret": [4, "0" * 64]}}, {"files": {"/etc/passwd": [4, "0" * 64]}}]
    + [{"parts": ["weights", name]} for name in ("../../secret", "/", "a\nb", "a\\b", "")],
)
def test_names_in_a_manifest_lead_nowhere_outside(copy, changes):
    checkpoint._write_manifest(copy, {**checkpoint.open_checkpoint(copy).manifest, **changes})
    with pytest.raises(CheckpointError, match=r"expected (files to be by name|parts to be names of files)"):
        checkpoint.open_checkpoint(copy)


@pytest.mark.parametrize("place", ["weights/d", "weights/more.txt", "weights"])
def test_a_link_within_a_checkpoint_is_refused(copy, tmp_path, place):
    """`publish` copied the folders of its user that links led to."""
    outside = tmp_path / "outside"
    shutil.copytree(copy / WEIGHTS, outside)
    if (copy / place).is_dir():
        shutil.rmtree(copy / place)
    (copy / place).symlink_to(outside / "d" if place == "weights/d" else outside)
    with pytest.raises(CheckpointError, match=f"{place} is a link, expected a file or folder of its own"):
        checkpoint.verify(checkpoint.open_checkpoint(copy), WEIGHTS)


def test_a_part_that_is_a_link_to_elsewhere_is_not_followed(copy, tmp_path):
    outside = shutil.copytree(copy / TRAINING, tmp_path / "outside")
    shutil.rmtree(copy / TRAINING)
    (copy / TRAINING).symlink_to(outside)
    checkpoint.remove(checkpoint.open_checkpoint(copy))
    assert names(Path(outside)) != []


# What is kept.


def kept(folder: Path) -> dict[str, bool]:
    """The checkpoints that are left, and whether each still holds all of its parts."""
    return {c.path.name: (c.path / TRAINING).exists() for c in checkpoint.find(folder)[0]}


def retire(folder: Path, **rule) -> None:
    resume.retire(config.RetentionConfig(**rule), folder)


@pytest.fixture
def eight(tmp_path) -> Path:
    for iteration in range(8):
        save(tmp_path, str(iteration))
    return tmp_path


def test_retention_keeps_the_newest_whole_and_the_weights_of_all(eight):
    retire(eight, keep_newest=3)
    assert kept(eight) == {str(k): k >= 5 for k in reversed(range(8))}
    for found in checkpoint.find(eight)[0]:
        checkpoint.verify(found, WEIGHTS)


def test_retention_keeps_every_kth_and_the_first_where_weights_are_not_kept(eight):
    retire(eight, keep_newest=1, keep_every=3, weights=False)
    assert kept(eight) == {"7": True, "6": False, "3": False, "0": False}


def test_retention_keeps_what_its_user_renamed(eight):
    (eight / "2").rename(eight / "best")
    save(eight, "4-stopped", segments=4)
    retire(eight, keep_newest=1, weights=False)
    assert kept(eight) == {"7": True, "best": True, "0": False}


def test_published_checkpoints_are_no_run_of_the_folder_above(eight):
    """`match ""` played one of those in checkpoints/."""
    manifest = {**checkpoint.open_checkpoint(eight / "7").manifest, "published": {"run": "a", "spent": {}}}
    checkpoint._write_manifest(eight / "7", manifest)
    assert [found.path.name for found in checkpoint.find(eight)[0]] == [str(k) for k in range(6, -1, -1)]


def test_retention_keeps_the_newest_healthy_one(tmp_path):
    for iteration in range(6):
        save(tmp_path, str(iteration), symptoms=("the weights are too large",) if iteration > 2 else ())
    retire(tmp_path, keep_newest=1)
    assert kept(tmp_path) == {"5": True, "4": False, "3": False, "2": True, "1": False, "0": False}


def test_a_part_that_a_kill_left_without_a_line_in_its_manifest_is_freed(copy):
    """A window of a gigabyte stayed for good: `drop_part` had written the manifest and not yet deleted."""
    shutil.copytree(copy / TRAINING, copy.parents[1] / "backup")
    checkpoint.drop_part(checkpoint.open_checkpoint(copy), TRAINING)
    shutil.copytree(copy.parents[1] / "backup", copy / TRAINING)
    save(copy.parent, "2")
    retire(copy.parent, keep_newest=1)
    assert kept(copy.parent) == {"2": True, "1": False}
