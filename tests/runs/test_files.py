"""Files that are whole or not there, also where several processes write them."""

import errno
import math
import os
import shutil
import subprocess
import sys

import pytest

from alphagateau.runs.files import to_json, write_text

WRITE = "import sys; from pathlib import Path; from alphagateau.runs.files import write_text\n" + (
    "for _ in range(200): write_text(Path(sys.argv[1]), sys.argv[2] * 10_000)"
)


def test_processes_that_write_the_same_file_do_not_meet(tmp_path):
    """As those of a study do that choose the same run."""
    path = tmp_path / "run.toml"
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, str(path), letter]) for letter in "ab"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            seen.add(path.read_text())
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen | {path.read_text()} <= {"a" * 10_000, "b" * 10_000}
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_link_leads_to_is_written_and_the_link_stays(tmp_path):
    """As /dev/stdout does where a shell's output is a file."""
    target, link = tmp_path / "out.txt", tmp_path / "stdout"
    target.write_text("before")
    link.symlink_to(target)
    write_text(link, "after")
    assert link.is_symlink() and target.read_text() == "after"


@pytest.fixture
def full_disk(monkeypatch) -> None:
    """Every file is opened, and none can be written to the disk."""

    def refuse(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)


def test_a_full_disk_is_one_error_with_file_need_and_free_space_and_leaves_nothing(tmp_path, full_disk, monkeypatch):
    """It was "No space left on device" alone, beside a file half written."""
    path = tmp_path / "games.pgn"
    path.write_text("before")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 200_000))
    with pytest.raises(OSError) as caught:
        write_text(path, "x" * 1_500_000)
    assert caught.value.filename == str(path)
    assert caught.value.strerror == "No space left on device (about 1.5 MB needed, 0.2 MB free)"
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_full_disk_needed_is_never_said_to_be_less_than_what_was_free(tmp_path, full_disk, monkeypatch):
    """The file system takes more than the text is long: it was "0.2 MB needed, 0.4 MB free"."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 400_000))
    with pytest.raises(OSError, match=r"\(more than 0.4 MB needed, 0.4 MB free\)"):
        write_text(tmp_path / "games.pgn", "x" * 200_000)


def test_a_number_that_is_not_finite_is_null_however_deep():
    """A mean of nothing was written as NaN, which no other reader of JSON takes."""
    value = {"nodes": math.nan, "rows": [(1.5, math.inf), {"best": -math.inf}], 3: True}
    assert to_json(value, None) == '{"nodes": null, "rows": [[1.5, null], {"best": null}], "3": true}'
