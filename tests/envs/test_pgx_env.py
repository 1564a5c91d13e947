"""Our pgx environments against pgx's own, ply by ply, and against pgx's test of its interface."""

import subprocess
import sys
from collections import Counter
from functools import cache
from typing import Literal

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pgx
import pytest
from boards import GAMES
from pgx._src import api_test as pgx_api_test
from pgx.experimental import auto_reset
from pgx.experimental.chess import from_fen as pgx_chess_from_fen
from pgx.gardner_chess import _from_fen as pgx_gardner_from_fen

import alphagateau
from alphagateau.envs.pgx_env import PgxState
from alphagateau.games.notation import from_fen, outcome, uci_to_edge

WHOLE = {"chess": pytest.mark.whole}  # pgx's step of it takes long to compile
PGX_GAMES = [pytest.param("chess", marks=WHOLE["chess"]), "gardner_chess"]
SEEN = ("current_player", "observation", "rewards", "terminated", "truncated", "legal_action_mask", "_step_count")


@cache
def envs(name: str):
    """Our environment and pgx's."""
    return alphagateau.make_env(name), pgx.make(name)


@cache
def steps(name: str):
    """The steps of both, compiled once."""
    return [jax.jit(env.step) for env in envs(name)]


def differences(ours, theirs) -> dict[str, jax.Array]:
    """Whether each field differs, [B] of states [B]."""
    found = {}
    for name in SEEN:
        x, y = getattr(ours, name), getattr(theirs, name)
        assert (x.shape, x.dtype) == (y.shape, y.dtype), name
        found[name] = (x != y).reshape(len(x), -1).any(axis=1)
    return found


def play_beside(name: str, num_games: int, num_plies: int, seed: int) -> tuple[dict, PgxState]:
    """(differences [T, B], our states [T, B]) of random games in both; one that is over begins anew."""
    both = envs(name)

    def ply(states, key):
        action_key, init_key = jax.random.split(key)
        action = jax.random.categorical(action_key, jnp.where(states[1].legal_action_mask, 0.0, -jnp.inf))
        after = [jax.vmap(env.step)(state, action) for env, state in zip(both, states, strict=True)]
        found, over, keys = differences(*after), after[1].terminated, jax.random.split(init_key, num_games)

        def begin_anew(env, state):
            anew = jax.vmap(env.init)(keys)
            return jax.tree.map(lambda a, b: jnp.where(over.reshape(-1, *[1] * (a.ndim - 1)), a, b), anew, state)

        seen = after[0].replace(observation=None, legal_action_mask=None)
        return [begin_anew(env, state) for env, state in zip(both, after, strict=True)], (found, seen)

    @jax.jit
    def run():
        keys = jax.random.split(jax.random.key(seed), num_games + num_plies)
        states = [jax.vmap(env.init)(keys[:num_games]) for env in both]
        return differences(*states), jax.lax.scan(ply, states, keys[num_games:])[1]

    first, (found, seen) = jax.device_get(run())
    return {field: np.concatenate([first[field][None], found[field]]) for field in SEEN}, seen


@pytest.mark.parametrize(
    ("name", "num_games", "num_plies", "mates"),
    [("gardner_chess", 64, 200, 30), pytest.param("chess", 24, 400, 2, marks=WHOLE["chess"])],
)
def test_random_games_are_pgxs_ply_by_ply(name, num_games, num_plies, mates):
    found, seen = play_beside(name, num_games, num_plies, seed=3)
    assert {field: np.argwhere(differs).tolist() for field, differs in found.items() if differs.any()} == {}
    endings = Counter(np.abs(seen.rewards[seen.terminated]).sum(axis=-1).tolist())
    assert endings[2.0] >= mates and endings[0.0] >= 5


def pgx_state(name: str, fen: str):
    """pgx's state of a FEN with White as player 0, without the start position that `from_fen` leaves in its past."""
    game = envs(name)[0].game
    ply = jnp.int32(from_fen(game, fen).ply)
    if name == "chess":
        state = pgx_chess_from_fen(fen)
        boards, hashes = state._x.board_history, state._x.hash_history
        x = state._x._replace(board_history=boards.at[1:].set(0), hash_history=hashes.at[1:].set(0), step_count=ply)
        return state.replace(_x=x)
    state = pgx_gardner_from_fen(fen)
    boards, hashes = state._board_history, state._hash_history
    return state.replace(
        current_player=state._turn,
        _board_history=boards.at[1:].set(0),
        _hash_history=hashes.at[1:].set(0),
        _step_count=ply,
    )


LINES = [  # the position, the moves, the ending
    ("chess", None, "f2f3 e7e5 g2g4 d8h4", "checkmate"),
    (
        "chess",
        None,
        "e2e3 a7a5 d1h5 a8a6 h5a5 h7h5 a5c7 a6h6 h2h4 f7f6 c7d7 e8f7 d7b7 d8d3 b7b8 d3h7 b8c8 f7g6 c8e6",
        "stalemate",
    ),
    ("chess", None, "g1f3 g8f6 b1c3 b8c6 c3b1 c6b8 b1c3 b8c6 c3b1 c6b8", "threefold repetition"),
    ("chess", "7k/8/6K1/8/8/8/8/R7 w - - 99 80", "a1a8", "checkmate"),
    ("chess", "7k/8/6K1/8/8/8/8/R7 w - - 98 80", "a1a7 h8g8", "fifty moves"),
    ("chess", "r7/8/8/8/8/6k1/8/6K1 b - - 0 256", "a8a2", "ply limit"),
    ("chess", "8/8/8/8/8/4k3/3p4/3KB3 w - - 0 1", "e1d2", "insufficient material"),
    ("chess", "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1 e8c8 g1g2 c8b8", "unterminated"),
    ("chess", "4k3/3p4/8/2P5/8/8/8/4K3 b - - 0 1", "d7d5 c5d6 e8d7", "unterminated"),
    ("chess", "n1n1k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7a8n e8d7", "unterminated"),
    ("gardner_chess", "4k/5/4K/5/R4 w - - 99 80", "a1a5", "checkmate"),
    ("gardner_chess", "4k/5/4K/5/R4 w - - 98 80", "a1a4 e5d5", "fifty moves"),
    ("gardner_chess", "r4/5/4k/5/4K b - - 0 128", "a5a4", "ply limit"),
    ("gardner_chess", "k4/P4/2K2/5/5 w - - 0 1", "c3b3", "stalemate"),
    ("gardner_chess", "4k/5/5/3p1/K3B w - - 0 1", "e1d2", "insufficient material"),
    ("gardner_chess", None, "b1a3 b5c3 a3b1 c3b5 " * 2, "threefold repetition"),
]


@pytest.mark.parametrize(
    ("name", "fen", "moves", "ending"), [pytest.param(*line, marks=WHOLE.get(line[0], ())) for line in LINES]
)
def test_a_line_ends_as_with_pgx(name, fen, moves, ending):
    env, theirs_env = envs(name)
    game = env.game
    if fen:
        ours, theirs = env.enter(from_fen(game, fen)), pgx_state(name, fen)
        ours = ours.replace(_step_count=theirs._step_count)
    else:
        ours, theirs = (env.init(jax.random.key(0)) for env in (env, theirs_env))
    for uci in moves.split():
        action = jnp.int32(game.labels[uci_to_edge(game, ours._x, uci)])
        ours, theirs = (step(state, action) for step, state in zip(steps(name), (ours, theirs), strict=True))
        for field in SEEN:
            np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field), err_msg=f"{uci}, {field}")
    assert outcome(game, ours._x)[1] == ending
    assert bool(ours.terminated) == (ending != "unterminated")


@pytest.mark.parametrize("name", PGX_GAMES)
def test_a_finished_or_truncated_game_stays_and_gives_nothing(name):
    game = envs(name)[0].game
    fen = {"chess": "R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1", "gardner_chess": "R3k/5/4K/5/5 b - - 0 1"}[name]
    over = envs(name)[0].enter(from_fen(game, fen))
    start = envs(name)[0].init(jax.random.key(1))
    cut = start.replace(truncated=jnp.bool_(True), rewards=jnp.ones(2))
    first = jnp.argmax(start.legal_action_mask)
    for before, after in ((over, steps(name)[0](over, 0)), (cut, steps(name)[0](cut, first))):
        jax.tree.map(np.testing.assert_array_equal, after, before.replace(rewards=jnp.zeros(2)))
    assert over.terminated and over.legal_action_mask.all() and not cut.terminated


@pytest.mark.parametrize("name", PGX_GAMES)
def test_an_illegal_action_loses_as_with_pgx(name):
    ours, theirs = (env.init(jax.random.key(1)) for env in envs(name))
    for action in (0, int(ours.legal_action_mask.argmin()), len(ours.legal_action_mask) - 1):
        assert not ours.legal_action_mask[action]
        a, b = (step(state, jnp.int32(action)) for step, state in zip(steps(name), (ours, theirs), strict=True))
        for field in set(SEEN) - {"observation"}:
            np.testing.assert_array_equal(getattr(a, field), getattr(b, field), err_msg=field)
        assert a.rewards[ours.current_player] == -1 and a.rewards.sum() == 0 and a.terminated


@pytest.mark.parametrize("name", PGX_GAMES)
@pytest.mark.filterwarnings("ignore:.*player_id:DeprecationWarning")
def test_the_other_player_sees_the_board_as_with_pgx(name):
    states = [env.init(jax.random.key(0)) for env in envs(name)]
    for _ in range(3):
        action = jnp.argmax(states[1].legal_action_mask)
        states = [step(state, action) for step, state in zip(steps(name), states, strict=True)]
    for player in (0, 1):
        ours, theirs = (env.observe(state, player) for env, state in zip(envs(name), states, strict=True))
        np.testing.assert_array_equal(ours, theirs)


def test_a_board_that_pgx_has_not_is_made_alike():
    """One move on 6x6, its planes by hand."""
    env = alphagateau.make_env("los_alamos_chess")
    start = env.init(jax.random.key(0))
    assert env.observation_shape == (6, 6, 115) and env.num_actions == 36 * 57 and env.id == start.env_id
    assert start.legal_action_mask.sum() == 10  # 6 pawns, 2 moves of each knight
    edge = uci_to_edge(env.game, start._x, "b1c3")
    after = env.step(start, jnp.int32(env.game.labels[edge]))
    planes = np.asarray(after.observation)
    assert after.current_player == 1 - start.current_player and not after.terminated
    knights = np.zeros((6, 6))
    knights[3 - 1, 2] = knights[0, 4] = 1  # Black sees White's on c3 in the third row from the top, the other on e1
    np.testing.assert_array_equal(planes[..., 7], knights)
    knights[2, 2], knights[0, 1] = 0, 1
    np.testing.assert_array_equal(planes[..., 14 + 7], knights)  # a ply before: on b1
    assert (planes[..., 12] == 1).all() and (planes[..., 13] == 0).all()
    np.testing.assert_array_equal(planes[0, 0, 112:], np.float32([1, 1 / 384, 1 / 100]))
    assert (planes[..., 28 : 28 + 12] == 0).all()  # before the start


def test_auto_reset_begins_a_game_anew_and_keeps_the_reward():
    env = envs("gardner_chess")[0]
    step = jax.jit(auto_reset(env.step, env.init))
    mate = env.enter(from_fen(env.game, "4k/5/4K/5/R4 w - - 99 80"))
    action = jnp.int32(env.game.labels[uci_to_edge(env.game, mate._x, "a1a5")])
    after = step(mate, action, jax.random.key(0))
    assert after.terminated and after.rewards.tolist() == [1, -1]
    fresh = env.init(jax.random.split(jax.random.key(0))[1])
    np.testing.assert_array_equal(after.observation, fresh.observation)
    on = step(after, jnp.argmax(after.legal_action_mask), jax.random.key(1))
    assert not on.terminated and on._step_count == 1 and on.current_player == 1 - after.current_player


def search_and_play(env: pgx.Env, num_games: int, num_plies: int) -> dict[str, jax.Array]:
    """Self-play by mctx with a linear network, as a program for pgx does it."""
    planes, actions = env.observation_shape, env.num_actions
    weights = jax.random.normal(jax.random.key(7), (int(np.prod(planes)), actions + 1)) / 10

    def evaluate(states):
        outputs = states.observation.reshape(num_games, -1) @ weights
        logits = jnp.where(states.legal_action_mask, outputs[:, :-1], jnp.finfo(jnp.float32).min)
        return logits, jnp.where(states.terminated, 0.0, jnp.tanh(outputs[:, -1]))

    def recurrent_fn(params, key, action, states):
        mover, states = states.current_player, jax.vmap(env.step)(states, action)
        (logits, value), reward = evaluate(states), states.rewards[jnp.arange(num_games), mover]
        discount = jnp.where(states.terminated, 0.0, -1.0)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), states

    def ply(states, key):
        search_key, *keys = jax.random.split(key, 1 + num_games)
        logits, value = evaluate(states)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states)
        found = mctx.gumbel_muzero_policy((), search_key, root, recurrent_fn, 4, ~states.legal_action_mask)
        after = jax.vmap(auto_reset(env.step, env.init))(states, found.action, jnp.stack(keys))
        return after, {"action": found.action, "rewards": after.rewards, "terminated": after.terminated}

    @jax.jit
    def run(key):
        states = jax.vmap(env.init)(jax.random.split(key, num_games))
        return jax.lax.scan(ply, states, jax.random.split(key, num_plies))[1]

    return jax.device_get(run(jax.random.key(2)))


@pytest.mark.whole
def test_a_search_plays_the_same_games_as_with_pgx():
    ours, theirs = (search_and_play(env, num_games=8, num_plies=48) for env in envs("gardner_chess"))
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert ours["terminated"].sum() >= 2 and np.abs(ours["rewards"]).sum() >= 2


@pytest.mark.parametrize("name", [pytest.param(name, marks=WHOLE.get(name, ())) for name in GAMES])
def test_pgxs_own_test_of_an_environment_passes(name, monkeypatch):
    """Two parts of it are replaced: ids are of pgx's boards only, and its random moves fail with this jax."""

    @jax.jit
    def act_randomly(key, mask):
        return jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf), axis=-1)

    monkeypatch.setattr(pgx_api_test, "EnvId", Literal[*pgx.available_envs(), name])  # pyright: ignore
    monkeypatch.setattr(pgx_api_test, "act_randomly", act_randomly)
    pgx.api_test(alphagateau.make_env(name), 2)


def test_a_drawing_shows_the_pieces_of_each_board_of_a_batch(tmp_path):
    env = alphagateau.make_env(alphagateau.make_game("los_alamos_chess"))  # a Game is as good as its name
    states = jax.vmap(env.init)(jax.random.split(jax.random.key(0), 2))
    states.save_svg(tmp_path / "two.svg", scale=2.0)
    drawn = (tmp_path / "two.svg").read_text()
    assert drawn == states.to_svg(scale=2.0) and drawn.startswith("<svg") and drawn.endswith("</svg>")
    assert [drawn.count(f' href="#{piece}"') for piece in ("white-pawn", "black-knight", "white-king")] == [12, 4, 2]
    assert f'width="{2 * (2 * 6 * 45 + 45)}.0"' in drawn


def test_an_environment_leaves_pgx_as_it_is_and_is_imported_when_asked_for():
    code = """
import sys, alphagateau
assert not {"jax", "pgx"} & set(sys.modules)
import alphagateau.api
assert "pgx" not in sys.modules
env = alphagateau.make_env("los_alamos_chess")
import pgx
assert env.id == "los_alamos_chess" and env.id not in pgx.available_envs() and env.num_players == 2
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_board_is_refused():
    with pytest.raises(ValueError, match="unknown game 'gardner', did you mean 'gardner_chess'"):
        alphagateau.make_env("gardner")
