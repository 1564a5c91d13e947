"""The code of the AlphaGateau paper (Rigaux and Kashima 2024), imported from a checkout as it lies there.

Today's packages lack three names that it reads; `bridge` adds them. Its network is configured as in its `train.py`. Its
graphs are made of pgx's observations and masks in each call, as ours are of Positions. Games stand at their first move,
as its time does not depend on the position. In its code batch normalization of all layers but one uses running
statistics in training too.
"""

import importlib
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pgx
import pgx.chess
from pgx._src.games.chess import Action
from throughput.games import SIMULATIONS

from peer_programs.boards import BATCH, Board, Call, Peer

FILES = ("models.py", "mcts.py", "chess_graph.py")
NAMES = (  # (where, name, value) that its jax and pgx had
    (jax, "tree_map", jax.tree.map),
    (pgx.chess, "Action", Action),
    (pgx.chess.State, "_board", property(lambda state: state._x.board)),
)
LAYER = {  # the layer of its train.py, which is that of the paper
    "mix_edge_node": True,
    "add_features": True,
    "self_edges": True,
    "simple_update": False,
    "sync_updates": False,
    "attention_pooling": True,
}


def check(path: Path) -> str | None:
    """What is wrong with a checkout, in a sentence, or None."""
    if not path.is_dir():
        return f"{path} is no folder: expected a checkout of the code of the AlphaGateau paper."
    missing = [name for name in FILES if not (path / name).is_file()]
    return f"{path} has no {missing[0]}: expected a checkout of the code of the AlphaGateau paper." if missing else None


def bridge() -> None:
    """Adds what today's packages lack."""
    for where, name, value in NAMES:
        if not hasattr(where, name):
            setattr(where, name, value)


def make_model(path: Path, board: Board, batch: int) -> tuple[Any, Any, Any, Any]:
    """(its ModelManager, its variables, the environment, the States of `batch` games)."""
    bridge()
    sys.dont_write_bytecode = True  # the checkout stays as it is
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))
    models = importlib.import_module("models")
    env = pgx.make(board.case.game)  # pyright: ignore[reportArgumentType]
    size = {"inner_size": board.config.hidden_size, "n_res_layers": board.config.num_blocks}
    module = models.EdgeNet2(n_actions=env.num_actions, **size, **LAYER)
    model = models.ModelManager(id="authors", model=module, use_embedding=False, use_graph=True, new_graph=True)
    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), batch))
    two = jax.tree.map(lambda x: x[:2], states)
    variables = jax.jit(lambda key, states: model.init(key, model.format_data(state=states)))(jax.random.key(0), two)
    return model, variables, env, states


def make_forward(path: Path, board: Board) -> Call:
    """A forward pass, with the making of its graphs."""
    model, variables, _, states = make_model(path, board, BATCH)

    @jax.jit
    def forward(variables, observation, mask):
        graphs = model.format_data(observation=observation, legal_action_mask=mask)
        return model(graphs, legal_action_mask=mask, params=variables)

    return partial(forward, variables, states.observation, states.legal_action_mask)


def make_step(path: Path, board: Board) -> Call:
    """A step of Adam on its two losses, a uniform policy and value 0 as targets."""
    model, variables, _, states = make_model(path, board, BATCH)
    optimizer = optax.adam(1e-3)

    def loss(params, statistics, observation, mask):
        graphs = model.format_data(observation=observation, legal_action_mask=mask)
        variables = {"params": params, "batch_stats": statistics}
        (logits, value), statistics = model(graphs, legal_action_mask=mask, params=variables, training=True)
        policy = mask / mask.sum(axis=-1, keepdims=True)
        losses = optax.softmax_cross_entropy(logits, policy), optax.l2_loss(value, jnp.zeros_like(value))
        return sum(x.mean() for x in losses), statistics

    @jax.jit
    def step(params, statistics, opt_state, observation, mask):
        gradient, statistics = jax.grad(loss, has_aux=True)(params, statistics, observation, mask)
        updates, opt_state = optimizer.update(gradient, opt_state, params)
        return optax.apply_updates(params, updates), statistics, opt_state

    params, statistics = variables["params"], variables["batch_stats"]
    opt_state = optimizer.init(params)
    return partial(step, params, statistics, opt_state, states.observation, states.legal_action_mask)


def make_ply(path: Path, board: Board) -> Call:
    """A ply of its self-play."""
    model, variables, env, states = make_model(path, board, board.case.num_games)
    play_ply = importlib.import_module("mcts").play_ply_datagen

    @jax.jit
    def play(variables, states, key):
        return play_ply(states, key, model, variables, env, SIMULATIONS)

    for ply in range(3):
        states, _ = play(variables, states, jax.random.key(ply))
    return partial(play, variables, states, jax.random.key(3))


def make_peer(path: Path) -> Peer:
    """The Peer of a checkout."""
    return Peer(partial(make_forward, path), partial(make_step, path), partial(make_ply, path))
