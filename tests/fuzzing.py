"""How many inputs the fuzz tests draw: few where every change is tested, thousands with FUZZ_EXAMPLES=5000."""

import os

from hypothesis import settings


def fuzzed(examples: int) -> settings:
    """`examples` inputs, the same ones each time, or as many new ones as FUZZ_EXAMPLES says."""
    asked = os.environ.get("FUZZ_EXAMPLES")
    return settings(max_examples=int(asked or examples), derandomize=asked is None)
