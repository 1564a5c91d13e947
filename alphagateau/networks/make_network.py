"""Makes the network of a record of keys, and wraps networks: without history, by board, averaged over mirror images."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from alphagateau.config.losses import heads_of
from alphagateau.config.records import ConfigError, show
from alphagateau.config.registers import NETWORKS, NetworkConfig
from alphagateau.games.rules import Game
from alphagateau.games.state import Position, without_past
from alphagateau.games.symmetry import has_mirror, mirror_edges, mirror_positions, select
from alphagateau.networks.network import Evaluation, Network, Variables, statistics_of


def make_network(game: Game, config: NetworkConfig) -> Network:
    """The network of an architecture's record of keys, for `game`. Raises ValueError."""
    check_part("game", game, Game)
    network = NETWORKS.make(config, game, config)
    if NETWORKS.is_of_plugin(config.architecture):
        check_network(game, config, network)
    if config.statistics_boards:
        network = with_board_statistics(network, game, config.statistics_boards)
    return network if config.history else without_history(network)


def check_part(name: str, part: object, kind: type, maker: str = "") -> None:
    """Raises TypeError for a name, keys or weights in place of what the library's `maker`, make_{name}, returns."""
    if not isinstance(part, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, as {maker or f'make_{name}'} returns it, got {show(part)}")


def check_network(game: Game, config: NetworkConfig, network: Network) -> None:
    """Raises ConfigError unless a network makes what training and searches read; nothing is computed."""
    if not isinstance(network, Network):
        _refuse(config, "make", "a function that returns a Network", f"one that returns {type(network).__name__}")
    try:
        inspect.signature(network.apply).bind(None, None, True, None)
    except TypeError as error:
        _refuse(
            config, "apply", "a function of variables, positions, whether to train and an axis", f"one with {error}"
        )
    variables = jax.eval_shape(network.init, jax.random.key(0))
    if not isinstance(variables, dict) or "params" not in variables:
        _refuse(config, "init", "a function that returns a dict with params", type(variables).__name__)
    dtypes = {x.dtype for x in jax.tree.leaves(variables["params"])}
    if not dtypes or not all(jnp.issubdtype(dtype, jnp.floating) for dtype in dtypes):
        _refuse(config, "params", "arrays of floats", ", ".join(sorted(map(str, dtypes))) or "none")
    positions = jax.eval_shape(jax.vmap(lambda _: game.position(game.init())), jnp.zeros(2))
    outputs = jax.eval_shape(lambda v, p: network.apply(v, p, True), variables, positions)
    kinds = [type(x).__name__ for x in (outputs if type(outputs) is tuple else [outputs])]
    if kinds != ["Evaluation", "dict"]:
        _refuse(config, "apply", "(Evaluation, statistics), the latter a dict", ", ".join(kinds))
    (logits, value, extra), statistics = outputs
    if not isinstance(extra, Mapping):
        _refuse(config, "extra", "a mapping from names to outputs", type(extra).__name__)
    expected = {"prior_logits": (logits, (2, game.num_edges)), "value": (value, (2,))}
    for name, (output, shape) in expected.items():
        if output.shape != shape or output.dtype != jnp.float32:
            _refuse(config, name, f"float32{list(shape)}", f"{output.dtype}{list(output.shape)} for two positions")
    if missing := [head.output for head in heads_of(config) if head.output not in extra]:
        _refuse(config, "extra", f"the outputs of its heads, {', '.join(missing)}", ", ".join(extra) or "none")
    leaves = map(jax.tree.leaves_with_path, (statistics, statistics_of(variables)))
    names, kept = ([jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in tree] for tree in leaves)
    if names != kept:
        _refuse(config, "statistics", f"those of init, {', '.join(kept) or 'none'}", ", ".join(names) or "none")


def _refuse(config: NetworkConfig, what: str, expected: str, got: str) -> NoReturn:
    raise ConfigError(f"architecture {show(config.architecture)}: {what} must be {expected}, got {got}")


def without_history(network: Network) -> Network:
    """The network without the boards before a position, which labelled positions lack."""

    def apply(variables: Variables, positions: Position, *options: Any, **named: Any):
        return network.apply(variables, without_past(positions), *options, **named)

    return network._replace(apply=apply)


def with_board_statistics(network: Network, game: Game, boards: Sequence[str]) -> Network:
    """The network with statistics by board; on a board that is not among `boards`, those of the first.

    Activations of boards of different sizes have different means and variances, so each board is normalized by
    statistics of its own (domain-specific batch normalization, Chang et al. 2019).
    """

    def init(key: jax.Array) -> Variables:
        variables = network.init(key)
        by_board = {board: jax.tree.map(jnp.copy, statistics_of(variables)) for board in boards}  # one buffer each
        return {"params": variables["params"], "statistics": by_board}

    def apply(variables: Variables, *options: Any, **named: Any):
        evaluation, new = network.apply(on_board(variables, game, boards), *options, **named)
        return evaluation, {"statistics": {**variables["statistics"], statistics_board(game, boards): new}}

    return network._replace(init=init, apply=apply)


def statistics_board(game: Game, boards: Sequence[str]) -> str:
    """The board whose statistics normalize a game."""
    return game.name if game.name in boards else boards[0]


def on_board(variables: Variables, game: Game, boards: Sequence[str]) -> Variables:
    """The variables of the network itself, with the statistics of a board."""
    return {"params": variables["params"], **variables["statistics"][statistics_board(game, boards)]}


def average_mirrors(game: Game, network: Network) -> Network:
    """The network, for searches, with logits and values averaged over a position and its mirror image.

    It is twice the work. A position with a castling right has no such image and is evaluated twice. Of `extra` the mean
    bins of the value alone are left.
    """

    def apply(variables: Variables, positions: Position, *options: Any, **named: Any):
        images = select(has_mirror(positions), mirror_positions(game, positions), positions)
        both = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), positions, images)
        evaluation, statistics = network.apply(variables, both, *options, **named)
        (logits, image_logits), values = jnp.split(evaluation.prior_logits, 2), jnp.split(evaluation.value, 2)
        image_logits = select(has_mirror(positions), image_logits[:, mirror_edges(game)], image_logits)
        bins = {name: x for name, x in evaluation.extra.items() if name == "value_logits"}
        extra = {name: jnp.mean(jnp.stack(jnp.split(x, 2)), axis=0) for name, x in bins.items()}
        return Evaluation((logits + image_logits) / 2, (values[0] + values[1]) / 2, extra), statistics

    return Network(network.init, apply)
