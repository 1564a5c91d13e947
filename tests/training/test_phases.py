"""Phases that are compiled ahead."""

from threading import Barrier, Event
from typing import Any

import pytest

from alphagateau.training.phases import Phase, Progress, advance, compile_all

STATE: Any = ["a RunState"]


def phase(name: str, compile) -> Phase:
    return Phase(name, lambda _: 1, lambda state, *_: [*state, name], compile=compile)


def test_all_phases_are_compiled_at_once_for_the_state():
    seen, meet = [], Barrier(2, timeout=60)

    def compile(state: Any) -> None:
        meet.wait()  # BrokenBarrierError if the other is not compiled meanwhile
        seen.append(state)

    phases = compile_all((phase("selfplay", compile), phase("train", compile)), STATE, True, print)
    state, progress = advance(phases, STATE, Progress())
    assert advance(phases, state, progress) == (["a RunState", "selfplay", "train"], Progress(1))
    assert seen == [STATE, STATE]


def test_a_phase_that_does_not_compile_says_so_when_it_is_run():
    def fail(_: Any) -> None:
        raise ValueError("no room")

    phases = compile_all((phase("selfplay", lambda _: None), phase("train", fail)), STATE, True, print)
    state, progress = advance(phases, STATE, Progress())
    with pytest.raises(ValueError, match="no room"):
        advance(phases, state, progress)


def test_a_run_says_which_program_it_waits_for_once_and_of_none_that_is_ready():
    """It was silent for up to 100 s."""
    said, gate = [], Event()
    phases = (phase("selfplay", lambda _: gate.wait(60)), phase("train", lambda _: None))

    def hear(text: str) -> None:
        said.append(text.partition(":")[0])
        gate.set()

    made = compile_all(phases, STATE, True, hear)
    for _ in range(2):
        advance(made, STATE, Progress())
    assert said == ["compiling selfplay, program 1 of 2"]
    made = compile_all(phases, STATE, False, hear)
    for _ in range(2):
        advance(made, *advance(made, STATE, Progress()))
    assert said[1:] == ["compiling selfplay, program 1 of 2", "compiling train, program 2 of 2"]
