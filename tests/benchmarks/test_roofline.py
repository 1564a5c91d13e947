"""What XLA's compiler for CUDA makes of the fused programs, where its packages are installed; no GPU is needed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["H100", "H200", "A100", "RTX 4090"])
def test_a_fused_forward_pass_reads_edges_once(gpu):
    """Of 256 positions at the paper's size; in bfloat16 XLA's kernels move 11 GB, by 566 kernels."""
    pytest.importorskip("jax_cuda12_plugin")
    command = [sys.executable, "benchmarks/roofline.py", "--kernel", "fused", "--only", "forward", "--gpu", gpu]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"(\w+), fused, 256: (\d+) kernels, ([\d.]+) GB", done.stdout)
    assert [dtype for dtype, _, _ in found] == ["float32", "bfloat16"]
    assert all(100 <= int(kernels) <= 180 for _, kernels, _ in found)
    assert 4.5 <= float(found[1][2]) <= 5.5
