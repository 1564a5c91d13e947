"""The example learns."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "minimal_alphazero.py"


def test_it_is_short_and_calls_what_is_public():
    text = EXAMPLE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    assert not re.search(r"^(from|import) alphagateau\.", text, re.MULTILINE)


@pytest.mark.whole
@pytest.mark.slow
def test_it_beats_the_random_mover():
    command = [sys.executable, str(EXAMPLE), "--iterations", "4"]
    # It computes for minutes and compiles for seconds, so without the flags of tests that do the opposite.
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    score = float(re.search(r"random mover: ([\d.]+) of 64", result.stdout)[1])
    assert score >= 0.9, result.stdout
