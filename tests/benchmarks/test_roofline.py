"""What XLA's compiler for CUDA makes of a forward pass, where its packages are installed; no GPU is needed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["H100", "H200", "A100"])
def test_a_fused_forward_pass_has_few_kernels_and_reads_edges_once(gpu):
    """Of 256 positions at the paper's size; 4.5 GB in bfloat16 are ten layers and the policy head, and little else."""
    pytest.importorskip("jax_cuda12_plugin")
    command = [sys.executable, "benchmarks/roofline.py", "--kernel", "fused", "--only", "forward", "--gpu", gpu]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"forward, (\w+), fused, 256: (\d+) kernels, ([\d.]+) GB", done.stdout)
    assert [dtype for dtype, _, _ in found] == ["float32", "bfloat16"]
    assert all(int(kernels) <= 110 for _, kernels, _ in found)
    assert float(found[1][2]) <= 4.5
