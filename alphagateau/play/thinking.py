"""Searches the position of a game by a checkpoint, within limits of nodes and time."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagateau.games.notation import from_fen, legal_moves, uci_to_edge
from alphagateau.games.rules import Game
from alphagateau.games.state import State, stack_rows
from alphagateau.games.variants import get_endless_game, get_game
from alphagateau.matches.find_moves import UNSOUND, engine_failures
from alphagateau.matches.player_specs import match_search
from alphagateau.matches.specs import PlayerError, PlayerSpec
from alphagateau.networks.make_network import make_network
from alphagateau.networks.trained import load_weights, network_config
from alphagateau.play.clock import UNMEASURED, Budget, Cost, forget, learn, may_evaluate, may_grow
from alphagateau.search.growing.anytime import grow_once, is_done, make_evaluate, make_root_evaluate, start_tree
from alphagateau.search.growing.tree import (
    BATCH,
    SIZES,
    Evaluate,
    Sigma,
    Tree,
    advance,
    bytes_per_node,
    is_full,
    make_tree,
    pack,
)
from alphagateau.search.growing.tree_lines import Line, lines, prior_weights
from alphagateau.search.search import MAX_VALUE

NOT_OVER = np.zeros((), bool)  # a State's `terminated`
CROWDED = 0.5  # of a tree's room; it is packed at the start of a search only
PACK_SECONDS = 1e-5  # a node, with some to spare


class Played(NamedTuple):
    """A game so far; draws by our rules do not end it, and it goes on while there are legal moves."""

    fen: str  # of its start
    edges: tuple[int, ...]
    moves: tuple[str, ...]  # the same in UCI
    state: State


@dataclass
class Thinker:
    """A network that thinks about one game after the other; `think` changes its tree."""

    game: Game
    step: Callable[[State, int], State]
    tree: Tree
    root: Played | None = None  # what the tree has grown from, if it may be kept
    evaluate_root: Evaluate | None = None  # only of a player without the growing tree
    root_cost: Cost = UNMEASURED  # of the root's evaluation
    batch_cost: Cost = UNMEASURED


class Limits(NamedTuple):
    """When a search ends: at the first that is reached, or when it is stopped."""

    simulations: int | None = None
    budget: Budget | None = None
    allowed: tuple[int, ...] | None = None  # the only edges to think about


class Watch(NamedTuple):
    """How a search is stopped, and reports how far it is."""

    started: float  # on the clock that `now` reads, in seconds
    is_stopped: Callable[[], bool] = lambda: False
    report: Callable[[int], None] = lambda done: None  # called with the simulations so far
    now: Callable[[], float] = time.monotonic


def find_device(kind: str) -> Any:
    """The first device of a kind, as "cpu"; None, JAX's own choice, for "auto". Raises ValueError, naming the kinds."""
    if kind == "auto":
        return None
    found = {}
    for name in ("cpu", "gpu", "tpu"):
        with suppress(RuntimeError):
            found[name] = jax.devices(name)[0]
    if kind not in found:
        raise ValueError(f"device {kind!r} was asked for: expected one that JAX finds here, {', '.join(found)} or auto")
    return found[kind]


def make_thinker(spec: PlayerSpec, game_name: str, megabytes: int, device: Any = None) -> Thinker:
    """The network of a checkpoint on a board, compiled, with so much memory for its tree. Raises CheckpointError."""
    game, config = get_game(game_name), network_config(spec.found)
    rules = get_endless_game(game_name)  # who ends a game is not the one who thinks about it
    variables = jax.device_put(load_weights(spec.found, game_name), device)
    evaluate = make_evaluate(rules, make_network(game, config))
    sigma = Sigma(**{key: value for key, value in spec.found.manifest["search"].items() if key in Sigma._fields})
    tree = make_tree(game, evaluate, variables, megabytes * 2**20 // bytes_per_node(game), sigma)
    search = spec.search and match_search(game_name, config, spec.search, is_endless=True)
    thinker = Thinker(game, jax.jit(rules.step), tree, evaluate_root=search and make_root_evaluate(search))
    start = replay(thinker, game.start_fen, ())
    for size in () if spec.search else SIZES:
        evaluate(variables, stack_rows([start.state] * size), np.full(size, -1, np.int32))
    for _ in range(2):  # compiles, then measures
        thinker.root_cost = thinker.batch_cost = UNMEASURED
        think(thinker, replay(thinker, game.start_fen, list(legal_moves(game, start.state))[:1]), Limits(4 * BATCH))
    thinker.root = None
    return thinker


def replay(thinker: Thinker, fen: str, moves: Sequence[str], known: Played | None = None) -> Played:
    """The game that starts at `fen`; `known` is one that may be its beginning.

    Raises ValueError for a FEN that is none, and IllegalMove at the first move that is none.
    """
    if known and known.fen == fen and known.moves == tuple(moves[: len(known.moves)]):
        played = known
    else:
        played = Played(fen, (), (), from_fen(thinker.game, fen)._replace(terminated=NOT_OVER))
    state, edges = played.state, list(played.edges)
    for number in range(len(edges), len(moves)):
        try:
            edge = uci_to_edge(thinker.game, state, moves[number])
        except ValueError as error:
            raise IllegalMove(str(error), Played(fen, tuple(edges), tuple(moves[:number]), state)) from None
        state = thinker.step(state, edge)._replace(terminated=NOT_OVER)
        edges.append(edge)
    return Played(fen, tuple(edges), tuple(moves), state)


class IllegalMove(ValueError):
    """A move of a game is none; one sentence, and the game before it."""

    def __init__(self, message: str, before: Played) -> None:
        super().__init__(message)
        self.before = before


def think(thinker: Thinker, played: Played, limits: Limits, watch: Watch | None = None) -> tuple[bool, int]:
    """Searches the position. Returns (whether anything is known of it, simulations done or positions visited).

    A search of a fixed number of simulations starts anew, so that it always finds the same; any other goes on with
    what the last one left below this position. A player without such a tree evaluates the root alone.

    Raises PlayerError if such a player's search is not sound, or an engine fails that it calls.
    """
    if thinker.evaluate_root and played.state.legal_edges[0] >= 0:  # a minimax of no move would not end
        with engine_failures():
            looked_at = start_tree(thinker.tree, played.state, limits.allowed, thinker.evaluate_root)
        if not abs(thinker.tree.values[0]) <= MAX_VALUE:
            raise PlayerError(UNSOUND)
        return True, looked_at
    watch = watch or Watch(time.monotonic())
    is_kept = limits.simulations is None and limits.allowed is None and _reuse_tree(thinker, played, limits, watch)
    if not is_kept:
        thinker.root = None
        if not _may_evaluate(thinker, limits, watch):
            thinker.root_cost, thinker.batch_cost = forget(thinker.root_cost), forget(thinker.batch_cost)
            return False, 0
        began = watch.now()
        start_tree(thinker.tree, played.state, limits.allowed)
        thinker.root_cost = learn(thinker.root_cost, watch.now() - began)
    thinker.root = played if limits.allowed is None else None
    return True, _grow(thinker, limits, watch)


def _grow(thinker: Thinker, limits: Limits, watch: Watch) -> int:
    tree, done, most = thinker.tree, 0, math.inf if limits.simulations is None else limits.simulations
    is_of_clock = limits.budget and limits.budget.left < math.inf  # and no analysis, which wants a score
    is_forced = is_of_clock and not limits.allowed and tree.counts[tree.root] == 1
    while done < most and not is_done(tree) and not is_forced and not watch.is_stopped():
        began = watch.now()
        if limits.budget and not may_grow(limits.budget, began - watch.started, thinker.batch_cost, not done):
            break
        done += grow_once(tree, int(min(BATCH, most - done)), limits.simulations)
        thinker.batch_cost = learn(thinker.batch_cost, watch.now() - began)
        watch.report(done)
    if not done:
        thinker.batch_cost = forget(thinker.batch_cost)
    return done


def _may_evaluate(thinker: Thinker, limits: Limits, watch: Watch) -> bool:
    return limits.budget is None or may_evaluate(limits.budget, watch.now() - watch.started, thinker.root_cost)


def _reuse_tree(thinker: Thinker, played: Played, limits: Limits, watch: Watch) -> bool:
    """Whether this position could be made the root of the tree that is there; a crowded tree is packed."""
    root, tree = thinker.root, thinker.tree
    is_later = root and (root.fen, root.edges) == (played.fen, played.edges[: len(root.edges)])
    if not (root and is_later and advance(tree, played.edges[len(root.edges) :])):
        return False
    if is_full(tree, CROWDED):
        if limits.budget and PACK_SECONDS * tree.num_nodes > limits.budget.target:
            return not is_full(tree) or not _may_evaluate(thinker, limits, watch)  # no time to pack it
        pack(tree)
    return True


def choose(thinker: Thinker, played: Played, temperature: float = 0.0, seed: int = 0) -> Line | None:
    """The move to play once something is known: the best, or by visits ** (1 / temperature); None if there is none.

    Where nothing was visited, as by a player without a tree, priors take the place of visits. A proven win is always
    played, a proven loss only if all moves lose; the same seed and position give the same.
    """
    found = lines(thinker.tree, thinker.game.max_legal_moves)
    weights = {line.edges[0]: line.visits for line in found}
    weights = weights if any(weights.values()) else prior_weights(thinker.tree)
    candidates = [line for line in found if weights[line.edges[0]] and (line.mate is None or line.mate > 0)]
    if not temperature or not candidates or candidates[0].mate is not None:
        return found[0] if found else None
    shares = np.array([weights[line.edges[0]] for line in candidates], float)
    shares = (shares / shares.max()) ** (1 / temperature)
    rng = np.random.default_rng([seed, *np.asarray(played.state.keys)[0].tolist()])
    return candidates[int(rng.choice(len(candidates), p=shares / shares.sum()))]
