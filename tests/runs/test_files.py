"""Files that are whole or not there, also where several processes write them."""

import subprocess
import sys

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
