"""What the comparison with peers does without any: its arguments, what it leaves out, its table."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import peers
from peer_programs.authors import FILES
from peer_programs.boards import BOARDS, Peer


def test_a_path_without_the_authors_code_and_a_name_of_no_program_end_in_a_sentence(tmp_path, capsys):
    for words, sentence in (
        ([str(tmp_path / "none")], "none is no folder"),
        ([str(tmp_path)], "has no models.py"),
        ([str(tmp_path), "--only", "backward"], "No program's name has backward"),
    ):
        if "--only" in words:
            for name in FILES:
                (tmp_path / name).touch()
        with pytest.raises(SystemExit) as stopped:
            peers.main(words)
        printed = capsys.readouterr()
        assert stopped.value.code == 2 and sentence in printed.err
        assert not printed.out and printed.err.count("\n") == 1


def test_a_peer_that_is_not_installed_or_fails_is_left_out_with_a_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None if name.startswith(("torch_", "openvino")) else name)
    assert set(peers.find_peers(tmp_path)) == {"authors", "ours with rms"}
    assert capsys.readouterr().err.splitlines() == [
        "GATv2 is left out: torch_geometric not installed.",
        "OpenVINO is left out: openvino not installed.",
    ]

    def fail(board):
        raise TypeError("no such argument\nsecond line")

    assert peers.started("forward", BOARDS[0], {"other": Peer(forward=fail), "silent": Peer()}) == {}
    assert capsys.readouterr().err == (
        "other, forward, 5x5, quickstart size, is left out: TypeError: no such argument\n"
    )


def test_a_peer_is_compared_with_each_of_ours_or_with_that_of_its_normalization():
    seconds = {
        "ours ghost": [1.0, 2.0, 4.0],
        "ours rms": [2.0, 2.0, 2.0],
        "authors": [3.0, 4.0, 4.0],
        "GATv2": [4.0, 5.0, 8.0],
    }
    rows = peers.rows_of("step", ("ghost", "rms"), seconds, {"authors": None, "GATv2": "rms"})
    assert peers.table(rows).splitlines()[2:] == [
        "| step, ours with ghost | authors | 2.00 (1.00 to 3.00) | 2000.0 ms |",
        "| step, ours with rms | authors | 2.00 (1.50 to 2.00) | 2000.0 ms |",
        "| step, ours with rms | GATv2 | 2.50 (2.00 to 4.00) | 2000.0 ms |",
    ]
    (row,) = peers.rows_of("forward", ("batch",), {"ours batch": [2.0], "GATv2": [3.0]}, {"GATv2": "rms"})
    assert (row.what, row.ratio, row.spread, row.seconds) == ("forward", 1.5, (1.5, 1.5), 2.0)
