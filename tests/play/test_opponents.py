"""Players without a tree in games against people and programs: the move is the search's, whatever the limits."""

import chess
import jax
import numpy as np
import pytest
from tiny_checkpoints import save_tiny

from alphagateau.games.notation import edge_to_uci
from alphagateau.matches.player_specs import load_player
from alphagateau.matches.specs import PlayerError, read_spec
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.giraffe.config import GiraffeConfig
from alphagateau.play.board.games import pgn_of
from alphagateau.play.board.requests import GameRequest
from alphagateau.play.opponents import find_player, player_of
from alphagateau.play.terminal import Setup, converse
from alphagateau.play.thinking import Limits, choose, make_thinker, replay, think
from alphagateau.play.uci.engine import serve
from alphagateau.search.config import StateValueConfig
from alphagateau.search.growing.tree_lines import lines
from alphagateau.search.minimax.config import DepthConfig

pytestmark = pytest.mark.whole  # networks are initialised
ACTION_VALUE = "?search=action_value"


@pytest.fixture(scope="module")
def spec(tmp_path_factory) -> str:
    """A checkpoint whose network values moves."""
    heads = {"history": False, "action_values": True, "num_bins": 8}
    return str(save_tiny(tmp_path_factory.mktemp("tiny"), "gardner_chess", AlphaZeroConfig, **heads).path)


@pytest.fixture(scope="module")
def thinker(spec):
    return make_thinker(find_player(spec + ACTION_VALUE), "gardner_chess", 4)


@pytest.fixture(scope="module")
def minimax(tmp_path_factory) -> str:
    """Giraffe, which looks at every move and its good captures."""
    found = save_tiny(tmp_path_factory.mktemp("giraffe"), "gardner_chess", GiraffeConfig)
    return f"{found.path}?search=depth&plies=1&nodes=100"


def test_minimax_plays_its_own_move_and_says_its_value(gardner, minimax):
    assert_plays_as_searched(gardner, minimax, make_thinker(find_player(minimax), "gardner_chess", 4))


def test_action_values_play_their_own_move_and_say_its_value(gardner, spec, thinker):
    assert_plays_as_searched(gardner, spec + ACTION_VALUE, thinker)


def assert_plays_as_searched(gardner, spec, thinker):
    player = load_player(read_spec(spec), "gardner_chess")
    played = replay(thinker, gardner.start_fen, ["b2b3", "a4b3"])
    states = jax.tree.map(lambda x: np.asarray(x)[None], played.state)
    found = jax.device_get(jax.jit(player.search)(player.variables, jax.random.split(jax.random.key(0), 1), states))
    num_nodes = 0 if found.num_nodes is None else int(found.num_nodes[0])
    assert think(thinker, played, Limits(200)) == (True, num_nodes)
    best = lines(thinker.tree, 3)
    assert choose(thinker, played) == best[0] and best[0].edges[0] == found.edge[0]
    values = np.sort(found.move_values[0])[::-1]
    np.testing.assert_allclose([line.value for line in best], values[:3], rtol=1e-6)


@pytest.mark.parametrize("way", ["action values", "minimax"])
def test_it_mates_as_a_uci_engine(spec, minimax, way):
    heard: list[str] = []
    position = "position fen 1k3/p2P1/2K2/P4/5 w - - 0 20"
    found = find_player(minimax if way == "minimax" else spec + ACTION_VALUE)
    serve(found, [position, "go nodes 64", "go infinite", "stop", "quit"], heard.append).join()
    best = [line.split()[1] for line in heard if line.startswith("bestmove")]
    assert len(best) >= 1 and set(best) <= {"d4d5q", "d4d5r"}
    known = [line for line in heard if line.endswith(f"pv {best[0]}")]
    assert known and all((" nodes 1 " in line) == (way == "action values") for line in known)


def test_what_was_not_visited_has_the_value_of_the_board_and_is_drawn_by_its_prior(gardner, spec):
    thinker = make_thinker(find_player(spec), "gardner_chess", 4)
    played = replay(thinker, gardner.start_fen, [])
    think(thinker, played, Limits(0))
    found = lines(thinker.tree, 50)
    assert not any(line.visits for line in found)
    assert {line.value for line in found} == {float(thinker.tree.values[thinker.tree.root])} != {0.0}
    assert choose(thinker, played) == found[0]
    assert len({choose(thinker, played, 1.0, seed) for seed in range(50)}) > 3


def test_it_plays_at_the_terminal(gardner, thinker):
    shown = "\n".join(converse(thinker, Setup(False, 200), ["quit"]))
    edge = thinker.tree.edges[0]
    move = chess.Move.from_uci(edge_to_uci(gardner, gardner.init(), edge))
    assert f"white plays {gardner.board_class(gardner.start_fen).san(move)}" in shown


def test_a_saved_game_names_the_player(gardner, spec):
    asked = GameRequest(board="gardner_chess", fen=gardner.start_fen, white_player=0, black="Human", simulations=200)
    assert '[WhiteSearch "action_value"]' in pgn_of(gardner, asked, [find_player(spec + ACTION_VALUE)])
    assert '[WhiteSearch "growing gumbel 200 simulations"]' in pgn_of(gardner, asked, [find_player(spec)])


def test_a_run_whose_search_is_one_of_values_or_minimax_plays_by_it(spec):
    found = find_player(spec)
    assert found.search is None
    for trained, search in (
        ({"algorithm": "state_value", "temperature": 0.1}, StateValueConfig()),
        ({"algorithm": "depth", "depth": 3}, DepthConfig(depth=3)),
    ):
        changed = found.found._replace(manifest={**found.found.manifest, "search": trained})
        assert player_of(changed).search == search


def test_a_run_grows_its_tree_by_the_values_scale_of_its_own_search(spec):
    """It was mctx's for all: 41 Elo less for checkpoints/gardner_selfplay, which learnt from values as they are."""
    found = find_player(spec)
    learnt = {"algorithm": "gumbel", "rescale_values": False, "value_scale": 0.5}
    for trained, expected in ((learnt, (False, 0.5)), ({"algorithm": "policy"}, (True, 0.1))):
        changed = found.found._replace(manifest={**found.found.manifest, "search": trained})
        sigma = make_thinker(player_of(changed), "gardner_chess", 4).tree.sigma
        assert (sigma.rescale_values, sigma.value_scale) == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            "?simulations=4",
            "expected search=policy or search=probability or search=depth or search=action_value or search=state_value",
        ),
        ("?search=state_value&temperature=0.1", "without temperature"),
        ("?search=none", "search is 'none', expected one of gumbel, probability, depth, policy"),
    ],
)
def test_what_is_searched_by_a_tree_has_no_options(spec, options, said):
    with pytest.raises(PlayerError) as error:
        find_player(spec + options)
    assert said in str(error.value)


def test_a_network_that_values_no_moves_is_named(tmp_path):
    found = save_tiny(tmp_path, "gardner_chess", AlphaZeroConfig)
    with pytest.raises(
        PlayerError, match=r"its network values no moves, expected one with network.action_values = true"
    ):
        load_player(read_spec(f"{found.path}{ACTION_VALUE}"), "gardner_chess")
