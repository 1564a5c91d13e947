"""Self-play: restarts, value targets, independence of how the plies and rows are cut, statistics by hand."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau import config
from alphagateau.config import ConfigError, SelfPlayConfig
from alphagateau.config.losses import Head
from alphagateau.distributed.mesh import make_mesh
from alphagateau.games.notation import board_from_fen, from_fen, legal_moves, to_fen
from alphagateau.games.rules import Game
from alphagateau.games.state import Position, State
from alphagateau.games.symmetry import select
from alphagateau.runs.run_folder import RunError
from alphagateau.search.baselines import make_policy_search, make_random_search
from alphagateau.search.config import PolicyConfig
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.gumbel.gumbel import make_gumbel_search
from alphagateau.training.frames import Trajectory
from alphagateau.training.losses.policy_value import policy_value_loss
from alphagateau.training.selfplay.openings import sample_openings
from alphagateau.training.selfplay.resignation import NOTHING, RESIGNED
from alphagateau.training.selfplay.selfplay import (
    Games,
    SelfPlayOptions,
    game_statistics,
    make_begin,
    make_selfplay,
    start_games,
    unsound_searches,
)
from alphagateau.training.selfplay.targets import frames_from, value_targets
from alphagateau.training.trainer import make_trainer

MATE_IN_ONE = {  # (position, the moves that mate)
    "1k3/p2P1/2K2/P4/5 w - - 0 20": {"d4d5q", "d4d5r"},
    "5/p4/2k2/P2p1/1K3 b - - 3 20": {"d2d1q", "d2d1r"},
}
ROWS, PLIES = 4, 6


def stack(rows) -> State:
    return jax.tree.map(lambda *x: np.stack(x), *jax.device_get(list(rows)))


def row_of(tree, row):
    return jax.tree.map(lambda x: x[row], tree)


def options_of(**keys) -> SelfPlayOptions:
    return SelfPlayOptions(SelfPlayConfig(num_games=ROWS, num_plies=PLIES, **keys))


def assert_equal(one, other) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


def of_states(played: tuple[Games, Trajectory]) -> tuple[State, Trajectory]:
    games, trajectory = jax.device_get(played)
    return games.states, trajectory


@pytest.fixture(scope="module")
def play(gardner: Game, stub_network):
    """(key, rows, first_ply, states) -> (states, Trajectory): 32 simulations a ply, a network that knows nothing."""
    network = stub_network(gardner)
    search = make_gumbel_search(gardner, network, GumbelConfig(num_simulations=32, max_num_considered_actions=32))
    compiled = jax.jit(make_selfplay(gardner, search, PLIES))
    variables = network.init(None)
    return lambda key, rows, first_ply, states: of_states(
        compiled(variables, jax.random.key(key), np.array(rows), np.int32(first_ply), Games(states))
    )


@pytest.fixture(scope="module")
def near_the_end(gardner: Game) -> State:
    """Games 1, 2 and 3 plies before the ply limit, and one at the start."""
    ends = ["b - - 0 128", "w - - 0 128", "b - - 0 127"]  # the limit is 256 plies: white's 129th move
    return stack([*(from_fen(gardner, f"r3k/5/5/5/R3K {end}") for end in ends), gardner.init()])


@pytest.fixture(scope="module")
def rules(gardner: Game):
    """(step, position) of ROWS games."""
    return jax.jit(jax.vmap(gardner.step)), jax.jit(jax.vmap(gardner.position))


# The reset trap.


def test_a_finished_game_restarts_as_a_live_root(gardner, rules):
    """Flags and all: a fresh board that is still flagged finished would make steps and searches void."""
    mated = from_fen(gardner, "1k1Q1/p4/2K2/P4/5 b - - 0 20")
    drawn = from_fen(gardner, "3rk/5/5/5/K2R1 w - - 100 90")
    live = from_fen(gardner, "3rk/5/5/5/K2R1 w - - 3 90")
    states = stack([mated, live, drawn, live])
    assert states.terminated.tolist() == [True, False, True, False]
    assert states.reward.tolist() == [1, 0, 0, 0]
    begin = make_begin(gardner, SelfPlayOptions(), jax.random.key(0), jnp.arange(4))
    restarted = jax.device_get(select(jnp.asarray(states.terminated), begin(0).states, states))
    for row in (1, 3):
        assert_equal(row_of(restarted, row), live)
    for row in (0, 2):
        assert_equal(row_of(restarted, row), gardner.init())
        assert not restarted.terminated[row] and restarted.reward[row] == 0
        assert len(legal_moves(gardner, row_of(restarted, row))) == 7
    after = rules[0](restarted, restarted.legal_edges[:, 0])
    assert after.ply.tolist() == [1, states.ply[1] + 1, 1, states.ply[3] + 1]


def test_play_goes_on_at_once_after_the_end_of_a_game(gardner, play, near_the_end):
    """Rows end after 1, 2 and 3 plies by the ply limit; what follows is a game from the first position."""
    after, trajectory = play(0, range(ROWS), 0, near_the_end)
    over = trajectory.discount == 0
    assert [np.flatnonzero(over[:, row]).tolist() for row in range(ROWS)] == [[0], [1], [2], []]
    assert not after.terminated.any()
    for row, plies in enumerate([1, 2, 3, 0]):
        new = row_of(trajectory, (slice(plies, None), row)).position
        assert to_fen(gardner, row_of(new, 0)) == gardner.start_fen
        assert (new.boards[0, 1:] == 0).all()  # no history of the game before
        assert new.ply.tolist() == list(range(PLIES - plies))
        assert after.ply[row] == PLIES - plies


def test_the_trajectory_is_what_the_rules_say_of_its_moves(gardner, rules, play, near_the_end):
    step, position = rules
    after, trajectory = play(0, range(ROWS), 0, near_the_end)
    states = near_the_end
    for ply in range(PLIES):
        record = row_of(trajectory, ply)
        assert_equal(record.position, position(states))
        for row in range(ROWS):
            assert int(record.edge[row]) in legal_moves(gardner, row_of(states, row)).values()
        states = jax.device_get(step(states, record.edge))
        assert_equal(record.reward, states.reward)
        assert_equal(record.discount, np.where(states.terminated, 0, -1))
        states = restarted(gardner, states)
    assert_equal(states, after)


def restarted(game: Game, states: State) -> State:
    """Finished rows at the first position, row by row."""
    over = enumerate(states.terminated)
    return stack(game.init() if is_over else row_of(states, row) for row, is_over in over)


@pytest.fixture(scope="module")
def decided(gardner: Game) -> State:
    """A mate in one of each color, a game two plies before the fifty-move rule, one at the start."""
    fens = [*MATE_IN_ONE, "3rk/5/5/5/K2R1 w - - 98 90"]
    return stack([*(from_fen(gardner, fen) for fen in fens), gardner.init()])


def test_the_search_after_a_restart_is_not_void(gardner, play, decided):
    after, trajectory = play(7, range(ROWS), 0, decided)
    assert trajectory.discount[0].tolist() == [0, 0, -1, -1]
    assert trajectory.discount[1, 2] == 0  # fifty moves
    assert not after.terminated.any()
    for row, ply in [(0, 1), (1, 1), (2, 2)]:
        new = row_of(trajectory, (ply, row))
        assert to_fen(gardner, new.position) == gardner.start_fen
        weights = new.policy_target.astype(np.float32)
        np.testing.assert_allclose(weights.sum(), 1, atol=2e-3)
        assert (weights[:7] > 0).all() and (weights[7:] == 0).all()
        np.testing.assert_allclose(new.prior_entropy, np.log(7), rtol=1e-5)
        assert int(new.edge) in legal_moves(gardner, gardner.init()).values()
        assert trajectory.position.ply[ply + 1, row] == 1


def test_mates_of_both_colors_are_wins_of_the_player_to_move(gardner, play, decided):
    _, trajectory = play(7, range(ROWS), 0, decided)
    frames = frames_from(trajectory)
    for row, (fen, mates) in enumerate(MATE_IN_ONE.items()):
        moves = legal_moves(gardner, row_of(decided, row))
        assert trajectory.edge[0, row] in {moves[uci] for uci in mates}
        board = board_from_fen(gardner, fen)
        for uci in mates:
            board.push_uci(uci)
            assert board.is_checkmate()
            board.pop()
        assert trajectory.reward[0, row] == 1 and trajectory.discount[0, row] == 0
        assert frames.value_target[0, row] == 1 and frames.value_mask[0, row]
    assert trajectory.position.color[0].tolist() == [0, 1, 0, 0]
    assert frames.value_mask[:, 2].tolist() == [True] * 2 + [False] * (PLIES - 2)
    assert (frames.value_target[:, 2] == 0).all()
    assert not frames.value_mask[:, 3].any()


# How the work is cut does not matter.


def test_the_plies_may_be_cut_into_calls(gardner, rules, near_the_end, play):
    """A call that starts in the middle, from the states there, goes on as the call that played through."""
    _, whole = play(3, range(ROWS), 0, near_the_end)
    middle = near_the_end
    for ply in range(3):
        middle = restarted(gardner, jax.device_get(rules[0](middle, whole.edge[ply])))
    _, second = play(3, range(ROWS), 3, middle)
    assert_equal(row_of(second, slice(PLIES - 3)), row_of(whole, slice(3, PLIES)))
    _, other = play(3, range(ROWS), 0, middle)
    assert (other.edge != second.edge).any()  # each ply has its own randomness


def test_a_row_does_not_depend_on_the_other_rows(near_the_end, play):
    after, trajectory = play(4, [0, 1, 2, 3], 16, near_the_end)
    order = np.array([2, 0, 3, 3])
    others_after, others = play(4, [2, 0, 9, 3], 16, row_of(near_the_end, order))
    for place in (0, 1, 3):
        assert_equal(row_of(others_after, place), row_of(after, order[place]))
        one, other = (row_of(x, (slice(None), i)) for x, i in ((others, place), (trajectory, order[place])))
        np.testing.assert_allclose(one.policy_target, other.policy_target, atol=1e-3)
        assert_equal(one._replace(policy_target=None), other._replace(policy_target=None))
    assert (others.edge[:, 2] != trajectory.edge[:, 3]).any()  # another row, other moves


def test_games_start_at_the_first_position(gardner):
    states = jax.jit(partial(start_games, gardner, 3))()
    for row in range(3):
        assert_equal(row_of(states, row), gardner.init())


# Random openings.


def test_an_opening_is_a_few_random_legal_moves(gardner):
    num_games, longest = 200, 3
    keys = jax.random.split(jax.random.key(0), num_games)
    draw = jax.jit(partial(sample_openings, gardner, max_plies=longest))
    states = jax.device_get(draw(start_games(gardner, num_games), keys))
    counts = np.bincount(states.ply)
    assert len(counts) == longest + 1 and counts[0] == 0 and counts[1:].min() > num_games / 6
    assert not states.terminated.any() and not states.keys[:, 1:].any()
    first_moves = [gardner.step(gardner.init(), edge) for edge in legal_moves(gardner, gardner.init()).values()]
    reached = {np.asarray(state.boards[0]).tobytes() for state in first_moves}
    after_one = states.boards[states.ply == 1, 0]
    assert {board.tobytes() for board in after_one} == reached and len(reached) == 7
    assert (states.color == states.ply % 2).all()


def test_new_games_begin_where_their_opening_ends(gardner, near_the_end):
    """A share of 1: each game that ends is followed by the row's opening, whose plies are in no Trajectory."""
    options, rows, key = options_of(random_openings=1.0, opening_plies=4), jnp.arange(ROWS), jax.random.key(2)
    play = jax.jit(make_selfplay(gardner, make_random_search(), PLIES, options))
    _, trajectory = jax.device_get(play({}, key, rows, jnp.int32(0), Games(near_the_end)))
    begin = make_begin(gardner, options, key, rows)
    expected = jax.device_get(jax.jit(lambda: jax.vmap(gardner.position)(begin(0).states))())
    assert expected.ply.min() >= 1
    for row, plies in enumerate([1, 2, 3]):
        assert_equal(row_of(trajectory.position, (plies, row)), row_of(expected, row))
    assert len({board.tobytes() for board in expected.boards[:, 0]}) > 1
    own = options._replace(own_openings=True)
    first_boards = jax.jit(lambda ply: make_begin(gardner, own, key, rows)(ply).states.boards[:, 0])
    of_rows = np.stack([first_boards(ply) for ply in range(8)], axis=1)
    assert all(len({board.tobytes() for board in boards}) > 4 for boards in of_rows)
    rare = options_of(random_openings=1e-9, opening_plies=4)
    assert_equal(jax.jit(lambda: make_begin(gardner, rare, key, rows)(0).states)(), start_games(gardner, ROWS))


# Resignation.


def hopeless_for_white(variables, keys, states):
    """Random moves; white is lost by the search's word, black all right."""
    found = make_random_search()(variables, keys, states)
    return found._replace(search_value=jnp.where(states.color == 0, -0.95, 0.95))


def test_a_player_resigns_at_its_third_hopeless_ply_in_a_row(gardner):
    """White at plies 0, 2 and 4: it resigns at ply 4 instead of moving, and a new game follows at once."""
    options, rows = options_of(resign_plies=3, resign_value=0.9, resign_played_out=0.0), jnp.arange(ROWS)
    play = jax.jit(make_selfplay(gardner, hopeless_for_white, PLIES, options))
    games = make_begin(gardner, options, jax.random.key(0), rows)(0)
    games, trajectory = jax.device_get(play({}, jax.random.key(0), rows, jnp.int32(0), games))
    assert (trajectory.position.ply == np.array([0, 1, 2, 3, 4, 0])[:, None]).all()
    assert (trajectory.resignation == np.array([NOTHING] * 4 + [RESIGNED, NOTHING])[:, None]).all()
    assert ((trajectory.edge < 0) == (trajectory.resignation == RESIGNED)).all()
    target, known = value_targets(trajectory.reward, trajectory.discount, trajectory.search_value)
    assert (target[:5] == np.float32([-1, 1, -1, 1, -1])[:, None]).all() and known[:5].all() and not known[5].any()
    sums = {name: float(x) for name, x in game_statistics(trajectory, gardner.max_plies).items()}
    assert (sums["games"], sums["resigned"], sums["white_wins"], sums["draws"]) == (ROWS, ROWS, 0, 0)
    assert sums["finished_plies"] == 4 * ROWS  # moves
    assert games.resigning.low_plies.tolist() == [[1, 0]] * ROWS  # of the game that goes on
    assert games.states.ply.tolist() == [1] * ROWS


# Playout cap randomization.


def test_a_cheap_ply_is_cheap_for_all_games_and_trains_no_policy(gardner, stub_network):
    """The cheap search counts its calls: had the compiler run both and chosen, it would be called at each ply."""
    network, calls, plies = stub_network(gardner), [], 40
    full, dear = make_random_search(), []

    def counted(search, calls):
        def run(*given):
            jax.debug.callback(lambda: calls.append(1))
            return search(*given)

        return run

    cheap = counted(make_policy_search(gardner, network, PolicyConfig()), calls)
    options = options_of(full_search_share=0.25)._replace(cheap_search=cheap)
    play = jax.jit(make_selfplay(gardner, counted(full, dear), plies, options))
    variables, rows, key = network.init(None), jnp.arange(ROWS), jax.random.key(5)
    games = Games(start_games(gardner, ROWS))
    _, trajectory = jax.device_get(play(variables, key, rows, jnp.int32(0), games))
    jax.effects_barrier()
    is_full = trajectory.is_full
    assert (is_full == is_full[:, :1]).all()
    assert 0 < len(dear) == is_full[:, 0].sum() < len(calls) == (~is_full[:, 0]).sum()
    first = trajectory.position.legal[:, 0]  # the policy of a network that knows nothing is its first legal move
    cheap_moves = [np.unpackbits(legal).argmax() for legal in first]
    assert all(trajectory.edge[ply, 0] == cheap_moves[ply] for ply in np.flatnonzero(~is_full[:, 0]))
    assert_equal(frames_from(trajectory).policy_mask, is_full)
    assert game_statistics(trajectory, gardner.max_plies)["full_searches"] == is_full.sum()
    _, later = jax.device_get(play(variables, key, rows, jnp.int32(10), games))
    assert_equal(later.is_full[: plies - 10], is_full[10:])  # a ply's draw is its own, however the plies are cut


# What a search must keep.


def test_a_search_or_a_heads_target_that_is_none_is_told(gardner):
    options, rows = options_of(resign_plies=3, resign_value=0.9, resign_played_out=0.0), jnp.arange(ROWS)
    play = jax.jit(make_selfplay(gardner, hopeless_for_white, PLIES, options))
    games = make_begin(gardner, options, jax.random.key(0), rows)(0)
    _, found = jax.device_get(play({}, jax.random.key(0), rows, jnp.int32(0), games))
    unsound, weights = jax.jit(unsound_searches), found.policy_target
    assert not unsound(found).any() and (found.edge < 0).any()
    for target, got in ((lambda made: made.reward[:2], r"\[2, 4\]"), (lambda made: None, "NoneType")):
        with pytest.raises(ConfigError, match=rf'head "toy": target must be \[T, B\], here \[6, 4\], got {got}'):
            frames_from(found, [Head("toy", "toy_head", "toy", policy_value_loss, target)])
    for changes in (
        {"edge": np.zeros_like(found.edge)},
        {"edge": np.full_like(found.edge, gardner.num_edges)},
        {"edge": np.full_like(found.edge, -2)},
        {"policy_target": 5 * weights},
        {"policy_target": np.log(weights + np.float16(1e-3))},
        {"policy_target": weights[..., ::-1]},
        {"policy_target": weights * np.float16(np.nan)},
        {"search_value": np.full_like(found.search_value, 1.01)},
        {"search_value": np.full_like(found.search_value, np.nan)},
    ):
        assert unsound(found._replace(**{"resignation": None, **changes})).all(), changes


def test_a_run_ends_with_its_first_games_where_a_search_is_not_sound():
    """Before they are written or learnt from."""
    experiment = config.load(config.find_file("smoke", "experiment"))
    trainer = make_trainer(experiment, make_mesh(experiment.num_shares))
    played = SimpleNamespace(statistics={"unsound": 3, "plies": 10})
    with pytest.raises(RunError, match=r'search "gumbel" is not sound: at 3 of 10 plies .* network "gateau" must'):
        trainer.producer.sample_games(played, "run", 1, "0")


# Value targets and statistics by hand.


def test_value_targets_by_hand():
    """Columns: a win then an unfinished game; a draw then a win; no end; a player who moves twice; a loss."""
    reward = [
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [1, 0, 0, 0, -1],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
    ]
    discount = [
        [-1, -1, -1, -1, -1],
        [-1, 0, -1, 1, -1],
        [0, -1, -1, -1, 0],
        [-1, -1, -1, 0, -1],
        [-1, -1, -1, -1, -1],
        [-1, 0, -1, -1, -1],
    ]
    expected = [
        [1, 0, 0, 1, -1],
        [-1, 0, 0, -1, 1],
        [1, -1, 0, -1, -1],
        [0, 1, 0, 1, 0],
        [0, -1, 0, 0, 0],
        [0, 1, 0, 0, 0],
    ]
    known = [
        [True, True, False, True, True],
        [True, True, False, True, True],
        [True, True, False, True, True],
        [False, True, False, True, False],
        [False, True, False, False, False],
        [False, True, False, False, False],
    ]
    target, mask = value_targets(jnp.float32(reward), jnp.float32(discount), jnp.full((6, 5), 0.3))
    assert_equal(target, np.float32(expected))
    assert_equal(mask, np.array(known))


def test_value_targets_of_both_colors_agree_on_the_winner(gardner, play, near_the_end):
    """Along one game the target changes sign with the player to move: white's result is one number."""
    _, trajectory = play(0, range(ROWS), 0, near_the_end)
    reward = np.where(trajectory.discount == 0, 1, 0).astype(np.float32)  # as if each game had been won
    target, known = value_targets(reward, trajectory.discount, trajectory.search_value)
    white = np.where(trajectory.position.color == 0, target, -target)
    assert known[:3].sum(axis=0).tolist() == [1, 2, 3, 0]
    for row in range(3):
        assert len(set(white[: row + 1, row].tolist())) == 1


def test_game_statistics_by_hand():
    """Columns: black mates at ply 10; white mates at ply 9; a draw by the limit of 256; white mates at ply 33."""
    ply = jnp.int16([[8, 6, 254, 30], [9, 7, 255, 31], [0, 8, 0, 32]])
    color = (ply % 2).astype(jnp.int8)
    discount = jnp.float32([[-1, -1, -1, -1], [0, -1, 0, -1], [-1, 0, -1, 0]])
    reward = jnp.float32([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 1]])
    position = Position(None, None, color, None, None, None, ply, None)
    value = jnp.float32([[0.995, -1, 0.99, 0], [0, 0, 0, 0], [0, 0, -0.5, 0]])
    trajectory = Trajectory(position, None, None, reward, discount, jnp.full((3, 4), 0.5), value, value)
    statistics = {k: float(v) for k, v in game_statistics(trajectory, max_plies=256).items()}
    assert statistics == {
        "plies": 12,
        "games": 4,
        "draws": 1,
        "white_wins": 2,
        "at_ply_limit": 1,
        "finished_plies": 10 + 9 + 256 + 33,
        "prior_entropy": 6,
        "saturated_values": 2,
    }


def test_a_mate_on_the_last_ply_is_no_truncation():
    """Two games end at ply 256: the first by mate, which was counted as ended by length."""
    ply, ones = jnp.int16([[255, 255]]), jnp.ones((1, 2))
    position = Position(None, None, jnp.int8([[1, 1]]), None, None, None, ply, None)
    trajectory = Trajectory(position, None, None, jnp.float32([[1, 0]]), 0 * ones, ones, ones, ones)
    statistics = game_statistics(trajectory, max_plies=256)
    assert (int(statistics["games"]), int(statistics["at_ply_limit"])) == (2, 1)
