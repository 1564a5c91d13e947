"""Phases that are compiled ahead."""

from threading import Barrier, Event
from typing import Any

import jax
import pytest
from command_lines import read_experiment

from alphagateau.distributed.mesh import make_mesh
from alphagateau.runs.logging.progress import COMPILE, Timer
from alphagateau.training.phases import Phase, Progress, advance, compile_all
from alphagateau.training.trainer import make_trainer

STATE: Any = ["a RunState"]


def phase(name: str, compile) -> Phase:
    return Phase(name, lambda _: 1, lambda state, *_: [*state, name], compile=compile)


def test_all_phases_are_compiled_at_once_for_the_state():
    seen, meet = [], Barrier(2, timeout=60)

    def compile(state: Any) -> None:
        meet.wait()  # BrokenBarrierError if the other is not compiled meanwhile
        seen.append(state)

    timer = Timer({})
    phases = compile_all((phase("selfplay", compile), phase("train", compile)), STATE, True, print, timer)
    state, progress = advance(phases, STATE, Progress())
    assert advance(phases, state, progress) == (["a RunState", "selfplay", "train"], Progress(1))
    assert seen == [STATE, STATE] and list(timer.take()) == [COMPILE]


def test_a_name_within_another_takes_its_own_seconds(monkeypatch):
    clock = iter([0.0, 1.0, 41.0, 43.0, 50.0, 52.0])
    monkeypatch.setattr("alphagateau.runs.logging.progress.time.perf_counter", lambda: next(clock))
    timer = Timer({"selfplay": 0.5})
    with timer("selfplay"), timer(COMPILE):
        pass
    with timer("selfplay"):
        pass
    assert timer.take() == {"selfplay": 0.5 + 3.0 + 2.0, COMPILE: 40.0}


@pytest.mark.parametrize("games", ["--selfplay.continue-games", "--selfplay.no-continue-games"])
def test_runs_that_differ_in_their_seed_share_their_programs(monkeypatch, games):
    """Each of a study's seeds compiled for a minute what was compiled."""
    monkeypatch.setattr(jax.stages.Lowered, "compile", lambda lowered: lowered.as_text())

    def programs(seed: int) -> list:
        experiment = read_experiment("smoke", [games, f"--seed={seed}"])
        trainer = make_trainer(experiment, make_mesh(experiment.num_shares))
        return [phase.compile(trainer.abstract_state) for phase in trainer.phases]

    found = programs(1)
    assert programs(2**31 - 1) == found and all("module @" in text for text in found)


def test_a_phase_that_does_not_compile_says_so_when_it_is_run():
    def fail(_: Any) -> None:
        raise ValueError("no room")

    phases = compile_all((phase("selfplay", lambda _: None), phase("train", fail)), STATE, True, print, Timer({}))
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

    made = compile_all(phases, STATE, True, hear, Timer({}))
    for _ in range(2):
        advance(made, STATE, Progress())
    assert said == ["compiling selfplay, program 1 of 2"]
    made = compile_all(phases, STATE, False, hear, Timer({}))
    for _ in range(2):
        advance(made, *advance(made, STATE, Progress()))
    assert said[1:] == ["compiling selfplay, program 1 of 2", "compiling train, program 2 of 2"]
    reading = Phase("read", lambda _: 1, lambda state, *_: state)
    advance(compile_all((reading, phases[1]), STATE, False, hear, Timer({})), STATE, Progress())
    assert len(said) == 3  # reading has no program
