"""`alphagateau train`."""

from pathlib import Path

import jax

from alphagateau.config import Experiment
from alphagateau.distributed import processes
from alphagateau.matches.final_match import final_match, print_scores
from alphagateau.runs.progress import Reporter
from alphagateau.runs.stop import StopRequest
from alphagateau.training.phases import RunState


def conclude(experiment: Experiment, run: Path, state: RunState, reporter: Reporter, stop: StopRequest) -> bool:
    """Plays and prints the match at the end, if there is to be one; False if it was asked to stop.

    Process 0 plays it; the others are done.
    """
    is_first = processes.is_first()
    processes.part()
    if not experiment.evaluation.num_games or not is_first:
        return True
    reporter.say("the match at the end: the last network against iteration 0 and the random mover")
    variables = jax.device_get(state.train.variables)
    scores = final_match(experiment, run, variables, lambda: stop.reason is not None)
    if scores is None:
        reporter.say(f"stopped ({stop.reason}) in the match at the end; the same command plays it")
        return False
    print_scores(scores, f"{run.name}, {experiment.game}")
    return True
