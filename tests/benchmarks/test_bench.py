"""What `benchmarks/bench.py` makes of seconds, and what the benchmark of accelerators reads in a compiled program."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import bench  # noqa: E402
import hlo  # noqa: E402
from throughput import data  # noqa: E402
from throughput.ratios import compare  # noqa: E402

PROGRAM = """HloModule two_loops

%fused (q: f32[4,2], u: f32[1,2], i: s32[]) -> f32[4,2] {
  %q = f32[4,2]{1,0} parameter(0)
  %u = f32[1,2]{1,0} parameter(1)
  %i = s32[] parameter(2)
  ROOT %update = f32[4,2]{1,0} dynamic-update-slice(%q, %u, %i, %i)
}

%inner (a: (f32[4,2], s32[])) -> (f32[4,2], s32[]) {
  %a = (f32[4,2]{1,0}, s32[]) parameter(0)
  %x = f32[4,2]{1,0} get-tuple-element(%a), index=0
  %row = f32[1,2]{1,0} slice(%x), slice={[0:1], [0:2]}
  %n = s32[] get-tuple-element(%a), index=1
  %add = f32[4,2]{1,0} fusion(%x, %row, %n), kind=kLoop, calls=%fused
  ROOT %t = (f32[4,2]{1,0}, s32[]) tuple(%add, %x)
}

%outer (b: (f32[4,2], s32[])) -> (f32[4,2], s32[]) {
  %b = (f32[4,2]{1,0}, s32[]) parameter(0)
  %copy = (f32[4,2]{1,0}, s32[]) copy(%b)
  ROOT %w2 = (f32[4,2]{1,0}, s32[]) while(%copy), condition=%go, body=%inner, metadata={op_name="deep"}
}

ENTRY %main (p: bf16[8]) -> f32[4,2] {
  %p = bf16[8]{0} parameter(0)
  %call = f32[4,2]{1,0} custom-call(%p), custom_call_target="product"
  %t0 = (f32[4,2]{1,0}, s32[]) tuple(%call, %call)
  %w = (f32[4,2]{1,0}, s32[]) while(%t0), condition=%go, body=%outer, backend_config={"known_trip_count":{"n":"3"}}
  ROOT %r = f32[4,2]{1,0} get-tuple-element(%w), index=0
}
"""


def test_seconds_become_paces_or_to_a_negative_target_multiples():
    seconds = {"fast": [1.0, 2.0, 4.0], "plain": [3.0, 4.0, 4.0]}
    pace = compare("forward", seconds, 2.0)
    assert (pace.ratio, pace.spread, pace.is_met) == (2.0, (1.0, 3.0), True)
    multiple = compare("compiling", seconds, -0.4)
    assert (multiple.ratio, multiple.spread, multiple.is_met) == (0.5, (1 / 3, 1.0), False)


@pytest.mark.parametrize(
    ("words", "measured"),
    [([], bench.USUAL), (["search", "data", "search", "--quick"], ("search", "data")), (["all"], tuple(bench.ROWS))],
)
def test_what_is_named_is_measured_once(monkeypatch, words, measured):
    asked: list[tuple[str, int]] = []
    rows = {name: lambda rounds, name=name: asked.append((name, rounds)) or [] for name in bench.ROWS}
    monkeypatch.setattr(bench, "ROWS", rows)
    monkeypatch.setattr(bench.ratios, "print_rows", lambda rows: None)
    bench.main(words)
    assert asked == [(name, 3 if "--quick" in words else 7) for name in measured]


def test_what_is_not_measured_is_said(capsys):
    with pytest.raises(SystemExit):
        bench.main(["everything"])
    assert "everything is not measured: expected games, network," in capsys.readouterr().err


def test_kernels_and_bytes_of_a_program_with_a_loop_in_a_loop():
    whole, outer, inner = hlo.loops_of(PROGRAM)
    assert (whole.kernels, whole.bytes) == (1, 16 + 32)
    assert (outer.depth, outer.trips, outer.kernels, outer.bytes) == (1, 3, 1, 2 * 36)
    update = 8 + 4 + 8  # reads a row and its number, writes the row; the rest of the array stays where it is
    assert (inner.depth, inner.trips, inner.kernels, inner.name) == (2, None, 2, "deep")
    assert inner.bytes == 32 + 8 + update
    assert hlo.total_kernels([whole, outer, inner]) == 1 + 3 + 3 * 2
    assert hlo.total_kernels([whole, outer, inner], trips_unknown=5) == 1 + 3 + 15 * 2
    assert hlo.total_bytes([whole, outer, inner]) == 48 + 3 * 72 + 3 * 60


@pytest.mark.whole
def test_the_benchmark_of_accelerators_runs_small_on_a_cpu(tmp_path):
    command = [sys.executable, "benchmarks/gpu.py", "--tiny", "--json", str(tmp_path / "gpu.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "gpu.json").read_text())
    rows = report["rows"]
    assert {row["program"] for row in rows} == {"forward", "a ply of self-play", "an optimizer step"}
    assert {row["dtype"] for row in rows} == {"float32", "bfloat16"}
    assert all(row["seconds"] > 0 and row["kernels"] > 0 and row["memory_bytes"] > 0 for row in rows)
    ply, step = (rows[i]["seconds"] for i in (0, 2))
    assert report["iterations"]["float32, xla"]["iteration"] == pytest.approx(2 * ply + 8 * step)
    assert "an iteration of the experiment, bfloat16, xla: self-play" in done.stdout


def test_reading_labels_is_timed_by_records(monkeypatch):
    """A row for boards and one for moves, each of whole iterations."""
    monkeypatch.setattr(data, "NUM_BOARDS", 64)
    monkeypatch.setattr(data, "NUM_RECORDS", 128)
    rows = list(data.data_rows(3))
    assert [row.name.split()[0] for row in rows] == ["boards", "moves"]
    for row in rows:
        assert row.value == pytest.approx(row.ratio * data.GOAL) and row.spread[0] <= row.ratio <= row.spread[1]
