"""Thinking by a simulated clock, on which each evaluation takes a time of its own."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from alphagateau.games.rules import Game
from alphagateau.games.variants import get_endless_game
from alphagateau.matches.specs import PlayerError
from alphagateau.play.clock import UNMEASURED, Clock, budget, fixed, learn
from alphagateau.play.thinking import Limits, Thinker, Watch, replay, think
from alphagateau.search.growing.anytime import make_evaluate
from alphagateau.search.growing.tree import make_tree
from alphagateau.search.growing.tree_lines import lines

LOOK, BATCH = 0.01, 0.1  # seconds of one row and of 16


@pytest.fixture(scope="module")
def evaluate(gardner: Game, stub_network):
    return make_evaluate(gardner, stub_network(gardner))


class Simulated:
    """A Thinker that knows what it costs, and its clock."""

    def __init__(self, game: Game, evaluate: Any) -> None:
        self.now, self.rows = 0.0, []

        def timed(variables: Any, states: Any, edges: Any):
            self.rows.append(len(edges))
            self.now += LOOK if len(edges) == 1 else BATCH * len(edges) / 16
            return evaluate(variables, states, edges)

        variables = {"prior_logits": jnp.zeros(game.num_edges), "material": jnp.float32(0.1)}
        self.thinker = Thinker(game, jax.jit(get_endless_game(game.name).step), make_tree(game, timed, variables, 4096))
        self.thinker.root_cost, self.thinker.batch_cost = learn(UNMEASURED, LOOK), learn(UNMEASURED, BATCH)

    def move(self, limits: Limits, moves: tuple[str, ...] = ()) -> tuple[bool, int]:
        played = replay(self.thinker, self.thinker.game.start_fen, moves)
        return think(self.thinker, played, limits, Watch(self.now, now=lambda: self.now))


def test_a_fixed_time_is_used_and_kept(gardner: Game, evaluate):
    simulated = Simulated(gardner, evaluate)
    assert simulated.move(Limits(budget=fixed(0.65, 0.05)))[0]
    assert simulated.now == pytest.approx(0.51)


@pytest.mark.parametrize("given", [fixed(0.65, 0.05), budget(Clock(10), 0.05)])
def test_a_move_that_alone_is_asked_about_is_looked_into(gardner: Game, evaluate, given):
    """`go movetime searchmoves` with one move, as of an annotator, told each move's value as the root's."""
    simulated = Simulated(gardner, evaluate)
    edge = int(gardner.init().legal_edges[2])
    _, done = simulated.move(Limits(budget=given, allowed=(edge,)))
    assert simulated.rows[0] == 1 and 4 <= done == lines(simulated.thinker.tree, 9)[0].visits


@pytest.mark.parametrize(("given", "is_searched"), [(budget(Clock(10), 0.05), False), (fixed(0.65, 0.05), True)])
def test_a_forced_move_is_played_at_once_of_a_clock_alone(gardner: Game, evaluate, given, is_searched):
    simulated = Simulated(gardner, evaluate)
    forced = replay(simulated.thinker, "k4/5/5/5/1R2K b - - 0 1", ())
    _, done = think(simulated.thinker, forced, Limits(budget=given), Watch(0.0, now=lambda: simulated.now))
    assert bool(done) == is_searched


def test_a_crowded_tree_is_kept_while_it_has_room(gardner: Game, evaluate):
    """What was pondered was lost at `ponderhit` once a tree was half full and time was short."""
    simulated = Simulated(gardner, evaluate)
    assert simulated.move(Limits(2500)) == (True, 2500)
    simulated.rows.clear()
    assert simulated.move(Limits(budget=budget(Clock(0.8), 0.05))) == (True, 0)
    assert not simulated.rows and simulated.thinker.tree.num_nodes > 2048


@pytest.mark.parametrize("value", [jnp.nan, 5.0])
def test_a_root_whose_search_is_not_sound_is_refused(gardner: Game, evaluate, value):
    """NaN is also the value where the move is not legal; a value of 5 was shown as centipawns."""
    simulated = Simulated(gardner, evaluate)
    simulated.move(Limits())
    simulated.thinker.evaluate_root = lambda *given: evaluate(*given)._replace(values=jnp.full(1, value))
    with pytest.raises(PlayerError, match="its search is not sound"):
        simulated.move(Limits())


def test_a_root_without_moves_is_left_to_the_network(gardner: Game, evaluate):
    """A minimax of it did not end, and the board answered nobody from then on."""
    simulated = Simulated(gardner, evaluate)
    simulated.thinker.evaluate_root = lambda *given: pytest.fail("searched")
    mated = replay(simulated.thinker, "k4/1Q3/1K3/5/5 b - - 0 1", ())
    assert think(simulated.thinker, mated, Limits(4)) == (True, 0)


def test_a_low_clock_leaves_time_for_a_look(gardner: Game, evaluate):
    """A look was priced as a batch, so that the move was made blindly."""
    simulated = Simulated(gardner, evaluate)
    assert simulated.move(Limits(budget=budget(Clock(0.3), 0.05))) == (True, 0)
    assert simulated.rows == [1]
    assert simulated.move(Limits(budget=budget(Clock(0.07), 0.05)), ("a2a3",)) == (False, 0)
    assert simulated.rows == [1]


def test_a_cost_that_forbids_batches_is_forgotten(gardner: Game, evaluate):
    simulated = Simulated(gardner, evaluate)
    simulated.thinker.batch_cost = learn(simulated.thinker.batch_cost, 60.0)
    given = Limits(budget=budget(Clock(10, 0.1), 0.05))
    found = [simulated.move(given, ("a2a3", "b4a3")[: ply % 3])[1] for ply in range(24)]
    assert not found[0] and any(found)
