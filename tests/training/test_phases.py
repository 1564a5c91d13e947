"""Phases that are compiled ahead."""

from threading import Barrier
from typing import Any

import pytest

from alphagateau.training.phases import Phase, Progress, advance, compile_ahead

STATE: Any = ["a RunState"]


def phase(name: str, compile) -> Phase:
    return Phase(name, lambda _: 1, lambda state, *_: [*state, name], compile=compile)


def test_all_phases_are_compiled_at_once_for_the_state():
    seen, meet = [], Barrier(2, timeout=60)

    def compile(state: Any) -> None:
        meet.wait()  # BrokenBarrierError if the other is not compiled meanwhile
        seen.append(state)

    phases = compile_ahead((phase("selfplay", compile), phase("train", compile)), STATE)
    state, progress = advance(phases, STATE, Progress())
    assert advance(phases, state, progress) == (["a RunState", "selfplay", "train"], Progress(1))
    assert seen == [STATE, STATE]


def test_a_phase_that_does_not_compile_says_so_when_it_is_run():
    def fail(_: Any) -> None:
        raise ValueError("no room")

    phases = compile_ahead((phase("selfplay", lambda _: None), phase("train", fail)), STATE)
    state, progress = advance(phases, STATE, Progress())
    with pytest.raises(ValueError, match="no room"):
        advance(phases, state, progress)
