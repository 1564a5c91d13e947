"""What XLA's compiler for CUDA makes of the fused programs, where its packages are installed; no GPU is needed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["H100", "H200", "A100", "RTX 4090"])
def test_a_fused_forward_pass_has_few_kernels_and_reads_edges_once(gpu):
    """Of 256 positions at the paper's size; 4.5 GB in bfloat16 are ten layers and the policy head, and little else."""
    found = compiled_for(gpu, "forward")
    assert [dtype for dtype, _, _ in found] == ["float32", "bfloat16"]
    assert all(40 <= int(kernels) <= 60 for _, kernels, _ in found)
    assert 3.5 <= float(found[1][2]) <= 4.5


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["H100", "H200", "A100"])
def test_a_fused_optimizer_step_moves_few_bytes(gpu):
    """In bfloat16; rows of 128 in float32 ask for more shared memory than an H100 has."""
    found = compiled_for(gpu, "step", "--normalization", "rms")
    assert [dtype for dtype, _, _ in found] == (["float32", "bfloat16"] if gpu == "A100" else ["bfloat16"])
    assert 20 <= float(found[-1][2]) <= 25


def compiled_for(gpu, program, *options):
    """(dtype, kernels, GB) of the fused programs of 256 positions that the compiler makes."""
    pytest.importorskip("jax_cuda12_plugin")
    command = [sys.executable, "benchmarks/roofline.py", "--kernel", "fused", "--only", program, "--gpu", gpu, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return re.findall(r"(\w+), fused, 256: (\d+) kernels, ([\d.]+) GB", done.stdout)
