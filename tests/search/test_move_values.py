"""Players that value moves and do not search: exact choices on positions made by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from boards import play

from alphagateau.games.notation import edge_to_uci, from_fen, legal_moves
from alphagateau.games.rules import Game
from alphagateau.games.state import State, pad_rows, stack_rows
from alphagateau.games.variants import get_game
from alphagateau.networks.network import Evaluation, Network
from alphagateau.search.config import ActionValueConfig, PolicyConfig, StateValueConfig
from alphagateau.search.make_search import make_search
from alphagateau.search.move_values import winning_probability
from alphagateau.search.search import Search, SearchOutput

MATE_IN_ONE = {
    "gardner_chess": "1k3/p2P1/2K2/P4/5 w - - 0 20",
    "los_alamos_chess": "k5/6/KQ4/6/6/6 w - - 0 1",
    "chess": "6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1",
}
ROOKS = "k4/5/5/5/1RK2 w - - 99 60"  # of 5x5; any move that is no mate is the fiftieth without progress


def valuing(game: Game) -> Network:
    """Says of every position that its moves are worth `variables["q"]` [S], in [0, 1], and the position 0."""

    def apply(variables, positions, train=False):
        batch = positions.color.shape[0]
        logits = jnp.broadcast_to(variables["q"][:, None], (batch, game.max_legal_moves, 1))
        zeros = jnp.zeros((batch, game.num_edges)), jnp.zeros(batch)
        return Evaluation(*zeros, {"action_value_logits": logits}), {}

    return Network(lambda key: {"q": jnp.zeros(game.max_legal_moves)}, apply)


def search_states(search: Search, variables, *states: State) -> SearchOutput:
    """A search of some States, always four rows, so that it compiles once."""
    batch = stack_rows(pad_rows(states, 4))
    return jax.device_get(search(variables, jax.random.split(jax.random.key(0), 4), batch))


@pytest.fixture(scope="module")
def searches(gardner):
    """Players of action values by what they value by rule."""
    made = {}
    for endings in ("exact", "repetition", "none"):
        made[endings] = jax.jit(make_search(gardner, valuing(gardner), ActionValueConfig(endings=endings)))
    return made


def q_of(game: Game, state: State, values: dict[str, float], rest: float = 0.5) -> dict:
    """Variables of `valuing`: the worth of some moves of a State by UCI."""
    q = np.full(game.max_legal_moves, rest, np.float32)
    for slot, move in enumerate(legal_moves(game, state)):
        q[slot] = values.get(move, rest)
    return {"q": jnp.asarray(q)}


def test_the_highest_action_value_is_played_and_of_equal_ones_the_first(gardner, searches):
    state = from_fen(gardner, gardner.start_fen)
    moves = list(legal_moves(gardner, state))
    found = search_states(searches["exact"], q_of(gardner, state, {moves[3]: 0.75, moves[5]: 0.75}), state)
    assert edge_to_uci(gardner, state, found.edge[0]) == moves[3]
    assert found.action_weights[0, 3] == 1 and found.action_weights[0].sum() == 1
    np.testing.assert_allclose(
        found.move_values[0, : len(moves)], [0.5 if i in (3, 5) else 0 for i in range(len(moves))]
    )
    assert np.isneginf(found.move_values[0, len(moves) :]).all() and found.search_value[0] == 0.5


def test_a_mate_is_worth_more_than_anything_a_network_may_say(gardner, searches):
    state = from_fen(gardner, MATE_IN_ONE["gardner_chess"])
    favourite = q_of(gardner, state, {"c3d3": 1.5})
    for endings, expected in (("exact", "d4d5r"), ("repetition", "c3d3"), ("none", "c3d3")):
        found = search_states(searches[endings], favourite, state)
        assert edge_to_uci(gardner, state, found.edge[0])[:4] == expected[:4]
        assert (found.search_value[0] == 1) == (endings == "exact")


def test_the_fiftieth_move_is_a_draw_by_the_exact_rule_alone(gardner, searches):
    state = from_fen(gardner, ROOKS)
    moves = legal_moves(gardner, state)
    won, lost = (search_states(searches["exact"], q_of(gardner, state, {}, rest), state) for rest in (0.9, 0.1))
    assert won.search_value[0] == lost.search_value[0] == 0 and not won.move_values[0, : len(moves)].any()
    assert search_states(searches["repetition"], q_of(gardner, state, {}, 0.9), state).search_value[0] == pytest.approx(
        0.8
    )


def test_a_third_occurrence_is_a_draw(gardner, searches):
    """The rook has gone to and fro: back on b1 the position occurs a third time; that loses nothing but a win."""
    fen, there, back = "3k1/5/5/5/R2K1 w - - 0 1", ["a1b1", "d5e5"], ["b1a1", "e5d5"]
    state = play(gardner, fen, *there, *back, *there, *back)
    assert state.terminated  # the start is on the board for the third time
    state = play(gardner, fen, *there, *back, *there, "b1a1")
    black = legal_moves(gardner, state)
    assert "e5d5" in black
    for rest, is_avoided in ((0.7, True), (0.3, False)):
        for endings in ("exact", "repetition"):
            found = search_states(searches[endings], q_of(gardner, state, {"e5d5": 0.9}, rest), state)
            assert (edge_to_uci(gardner, state, found.edge[0]) != "e5d5") == is_avoided
        found = search_states(searches["none"], q_of(gardner, state, {"e5d5": 0.9}, rest), state)
        assert edge_to_uci(gardner, state, found.edge[0]) == "e5d5"


def test_a_temperature_draws_in_the_first_plies_only(gardner):
    search = jax.jit(make_search(gardner, valuing(gardner), ActionValueConfig(temperature=0.1, temperature_plies=2)))
    early = from_fen(gardner, gardner.start_fen)
    moves = list(legal_moves(gardner, early))
    late = early._replace(ply=jnp.int16(2))
    found = search_states(search, q_of(gardner, early, {moves[2]: 0.6}, 0.5), early, late, late)
    weights = np.exp(np.where(np.arange(len(moves)) == 2, 6.0, 5.0))
    np.testing.assert_allclose(found.action_weights[0, : len(moves)], weights / weights.sum(), rtol=1e-4)
    assert found.action_weights[1, 2] == 1 and found.edge[1] == found.edge[2] == legal_moves(gardner, early)[moves[2]]
    policy = jax.jit(make_search(gardner, valuing(gardner), PolicyConfig(temperature=1.0)))
    drawn = search_states(policy, q_of(gardner, early, {}), early, early, early, early).edge
    assert len(set(drawn.tolist())) > 1


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.whole] * (name != "gardner_chess")) for name in MATE_IN_ONE]
)
def test_the_value_after_each_move_finds_mates_on_every_board(name, stub_network):
    game = get_game(name)
    search = jax.jit(make_search(game, stub_network(game), StateValueConfig()))
    state = from_fen(game, MATE_IN_ONE[name])
    found = search_states(search, stub_network(game).init(None) | {"material": jnp.float32(0.1)}, state)
    after = play(game, MATE_IN_ONE[name], edge_to_uci(game, state, found.edge[0]))
    assert after.reward == 1 and found.search_value[0] == 1


def test_the_value_after_each_move_is_the_networks_for_the_opponent(gardner, stub_network):
    """Material, against one position at a time; draws by rule are 0, and a piece that can be taken is."""
    network = stub_network(gardner)
    variables = network.init(None) | {"material": jnp.float32(0.1)}
    fens = [gardner.start_fen, "1k3/p2P1/2K2/P4/5 b - - 98 20", "2k2/5/1P1q1/2P2/2K2 w - - 0 1"]
    states = [from_fen(gardner, fen) for fen in fens]
    found = search_states(jax.jit(make_search(gardner, network, StateValueConfig())), variables, *states)
    for row, fen in enumerate(fens):
        for slot, move in enumerate(legal_moves(gardner, states[row])):
            after = play(gardner, fen, move)
            expected = float(after.reward) if after.terminated else -np.tanh(0.1 * after.boards[0].sum())
            assert found.move_values[row, slot] == pytest.approx(expected, abs=1e-5), (fen, move)
    taken = [move for move in legal_moves(gardner, states[2]) if move.endswith("d3")]
    assert not taken or edge_to_uci(gardner, states[2], found.edge[2]) in taken


def test_a_network_without_action_values_is_refused(gardner, stub_network):
    search = make_search(gardner, stub_network(gardner), ActionValueConfig())
    state = from_fen(gardner, gardner.start_fen)
    with pytest.raises(ValueError, match="the network has no action values: expected"):
        search_states(search, stub_network(gardner).init(None), state)


@pytest.mark.whole
def test_where_all_best_moves_win_somebody_may_choose(gardner):
    """Asked about five moves as good as won; not where one of them is not, nor where one mates."""
    asked = []

    def finish(positions, edges):
        asked.append(np.asarray(edges)[0].tolist())
        return np.where(np.asarray(edges)[:, 0] >= 0, np.asarray(edges)[:, 3], -1).astype(np.int32)

    search = jax.jit(make_search(gardner, valuing(gardner), ActionValueConfig(), finish))
    state = from_fen(gardner, "4k/5/5/1R3/R1K2 w - - 0 1")
    moves = legal_moves(gardner, state)
    best = list(moves)[:5]
    won = q_of(gardner, state, {move: 1 - 0.001 * place for place, move in enumerate(best)})
    found = search_states(search, won, state)
    assert found.edge[0] == moves[best[3]] and asked[-1] == [moves[move] for move in best]
    assert search_states(search, q_of(gardner, state, dict.fromkeys(best[:4], 1.0)), state).edge[0] == moves[best[0]]
    assert asked[-1] == [-1] * 5
    mating = from_fen(gardner, MATE_IN_ONE["gardner_chess"])
    found = search_states(search, q_of(gardner, mating, {}, 1.0), mating)
    assert found.search_value[0] == 1 and asked[-1] == [-1] * 5


@pytest.mark.whole
def test_a_player_of_state_values_may_ask_too(gardner, stub_network):
    """Two rooks up every move wins; of even material none does."""
    choose = lambda positions, edges: np.asarray(edges)[:, 3].astype(np.int32)  # noqa: E731
    network = stub_network(gardner)
    search = jax.jit(make_search(gardner, network, StateValueConfig(), choose))
    variables = {**network.init(None), "material": jnp.float32(1)}
    for fen, place in (("4k/5/5/1R3/R1K2 w - - 0 1", 3), (gardner.start_fen, 0)):
        state = from_fen(gardner, fen)
        assert search_states(search, variables, state).edge[0] == list(legal_moves(gardner, state).values())[place]


@pytest.mark.parametrize(("num_bins", "decoded"), [(32, 0.9784), (64, 0.9892), (128, 0.9946)])
def test_a_sure_win_is_what_bins_can_say(num_bins, decoded):
    assert winning_probability(num_bins) == pytest.approx(0.995 * decoded, abs=1e-4)
