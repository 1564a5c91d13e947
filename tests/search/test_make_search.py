"""Searches by name, and what it takes to add one."""

import math

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from alphagateau.config.records import key, num, record
from alphagateau.config.registers import SEARCHES, SearchConfig, SearchMethod
from alphagateau.games.notation import from_fen, legal_moves, uci_to_edge
from alphagateau.games.rules import Game
from alphagateau.search.config import PolicyConfig, RandomConfig
from alphagateau.search.gumbel import batched_mctx
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.make_search import make_search
from alphagateau.search.search import SearchOutput


def first_states(game: Game):
    return jax.tree.map(lambda x: jnp.asarray(x)[None], game.init())


def test_a_search_is_made_by_its_name(gardner: Game, stub_network) -> None:
    network = stub_network(gardner)
    states, keys = first_states(gardner), jax.random.split(jax.random.key(0), 1)
    favourite = int(states.legal_edges[0, 3])
    variables = network.init(None) | {"prior_logits": jnp.zeros(gardner.num_edges).at[favourite].set(1.0)}
    policy = make_search(gardner, network, PolicyConfig())(variables, keys, states)
    assert int(policy.edge[0]) == favourite
    random = make_search(gardner, network, RandomConfig())
    moves = {int(random(variables, jax.random.split(jax.random.key(n), 1), states).edge[0]) for n in range(20)}
    assert len(moves) > 3


def test_gumbel_gets_all_its_options(gardner: Game, stub_network, monkeypatch) -> None:
    """They reach mctx's selection of moves, its tree and its noise; the batch by "leaf" takes no levels."""
    network, states, key = stub_network(gardner), first_states(gardner), jax.random.key(3)
    scales = {"value_scale": 0.3, "maxvisit_init": 20.0, "rescale_values": False}
    asked = {"num_simulations": 7, "max_num_considered_actions": 3}
    calls, plain_search = [], batched_mctx.search
    monkeypatch.setattr(batched_mctx, "search", lambda *words: calls.append(words) or plain_search(*words))
    search = make_search(gardner, network, GumbelConfig(**asked, **scales, gumbel_scale=0.5, batch_by="leaf"))
    noise_of = jax.jit(lambda *words: (search(*words), calls[0][1].extra_data.root_gumbel)[1])
    gumbel = noise_of(network.init(None), key[None], states)
    ((_, tree, _, select_root, select_interior),) = calls
    given = dict(select_root.keywords)
    for qtransform in (given.pop("qtransform"), select_interior.keywords["qtransform"]):
        assert qtransform.func is mctx.qtransform_completed_by_mix_value and qtransform.keywords == scales
    assert given == asked and tree.num_simulations == 7
    np.testing.assert_allclose(gumbel[0], 0.5 * jax.random.gumbel(key, states.legal_edges.shape[1:]), rtol=1e-6)


def test_values_weigh_as_much_as_the_keys_say(gardner: Game, stub_network) -> None:
    """Each move visited once: mate is worth 1, the others 0, so mate is exp((20 + 1) * 0.05) times as likely."""
    network, state = stub_network(gardner), from_fen(gardner, "1k3/p2P1/2K2/P4/5 w - - 0 20")
    states, keys = jax.tree.map(lambda x: jnp.asarray(x)[None], state), jax.random.split(jax.random.key(0), 1)
    moves = list(legal_moves(gardner, state))
    config = GumbelConfig(
        num_simulations=len(moves),
        max_num_considered_actions=len(moves),
        value_scale=0.05,
        maxvisit_init=20.0,
        rescale_values=False,
    )
    weights = jax.jit(make_search(gardner, network, config))(network.init(None), keys, states).action_weights[0]
    for slot, move in enumerate(moves):
        worth = 1.0 if move in ("d4d5q", "d4d5r") else 0.0
        assert float(weights[slot] / weights[moves.index("c3d3")]) == pytest.approx(math.exp(1.05 * worth), rel=1e-4)


@pytest.mark.parametrize("kind", [PolicyConfig, GumbelConfig])
def test_a_search_may_average_over_mirrors(gardner: Game, stub_network, kind) -> None:
    """A network that likes one pawn's move likes it half as much, and as much its image where that is legal."""
    network, states = stub_network(gardner), first_states(gardner)
    edge = uci_to_edge(gardner, gardner.init(), "b2b3")
    variables = network.init(None) | {"prior_logits": jnp.zeros(gardner.num_edges).at[edge].set(1.0)}
    search = make_search(gardner, network, kind(average_mirrors=True))
    logits = jax.jit(search)(variables, jax.random.split(jax.random.key(0), 1), states).prior_logits[0]
    by_move = {uci: float(logits[slot]) for slot, uci in enumerate(legal_moves(gardner, gardner.init()))}
    assert by_move["b2b3"] == by_move["d2d3"] == 0.5
    assert set(by_move.values()) == {0.0, 0.5}


def test_a_new_search_is_a_function_and_a_line(gardner: Game, stub_network, monkeypatch) -> None:
    @record
    class NthConfig(SearchConfig):
        algorithm: str = key("", default="nth")
        slot: int = num("")

    def make_first(game: Game, network, config, tie_break):
        del game, network, tie_break

        def search(variables, keys, states) -> SearchOutput:
            del variables, keys
            zeros = jnp.zeros(states.legal_edges.shape)
            return SearchOutput(states.legal_edges[:, config.slot], zeros, zeros, zeros[:, 0], zeros[:, 0])

        return search

    monkeypatch.setitem(SEARCHES._entries, "nth", SearchMethod("nth", NthConfig, make_first))
    search = make_search(gardner, stub_network(gardner), SEARCHES.read({"algorithm": "nth", "slot": 2}))
    states = first_states(gardner)
    assert search({}, jax.random.split(jax.random.key(0), 1), states).edge[0] == states.legal_edges[0, 2]
