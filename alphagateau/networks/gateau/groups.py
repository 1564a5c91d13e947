"""The edges of a board in tiles by receiver, which the kernels of `fused*.py` take one at a time."""

from typing import NamedTuple

import numpy as np

from alphagateau.games.rules import Game

BLOCK = 16  # nodes: the fewest rows of a product on a GPU's matrix units
TILE_RECEIVERS = (2, 4)  # what is tried: with 2 on 8x8 and 4 on smaller boards a tile has 64 edges at most
TRIES = 20  # orders of the nodes, at random: without them a tile of 5x5 has 67 edges, above a power of 2


class Groups(NamedTuple):
    """The nodes of a board in P places, in blocks of 16, and its edges in tiles of T; -1 where nothing is."""

    nodes: np.ndarray  # int32 [P], the node at each place
    edges: np.ndarray  # int32 [tiles * T], the edge at each place
    senders: np.ndarray  # int32 [tiles, T], the place of an edge's sender
    receivers: np.ndarray  # int32 [tiles, T], the place of an edge's receiver in its block
    node_places: np.ndarray  # int32 [N]
    edge_places: np.ndarray  # int32 [E]


def make_groups(game: Game, neighbors: str) -> Groups:
    """The Groups of a Game's move graph with the fewest places for edges; of two with as many, narrow tiles."""
    found = [groups_of(game, neighbors, tile_receivers) for tile_receivers in TILE_RECEIVERS]
    return min(found, key=lambda groups: len(groups.edges))


def groups_of(game: Game, neighbors: str, tile_receivers: int) -> Groups:
    """The Groups by so many receivers a tile; these have equal numbers of edges as nearly as tries find them."""
    senders, receivers = game.senders, game.receivers
    if neighbors == "outgoing":
        senders, receivers = receivers, senders
    degrees = np.bincount(receivers, minlength=game.num_squares)
    num_places = power_of_two(max(game.num_squares, BLOCK))
    rng = np.random.default_rng(0)
    shape = num_places // tile_receivers, tile_receivers
    tries = [divide(degrees, rng.uniform(0.5, 1.0, len(degrees)), shape) for _ in range(TRIES)]
    nodes = min(tries, key=lambda nodes: edges_of_tiles(degrees, nodes).max())
    node_places = inverse(nodes.reshape(-1), game.num_squares)

    tile_of = node_places[receivers] // tile_receivers
    by_tile = [np.flatnonzero(tile_of == tile) for tile in range(len(nodes))]
    width = power_of_two(max(BLOCK, *map(len, by_tile)))
    edges = np.array([np.pad(own, (0, width - len(own)), constant_values=-1) for own in by_tile], np.int32)
    return Groups(
        nodes=nodes.reshape(-1),
        edges=edges.reshape(-1),
        senders=np.where(edges < 0, -1, node_places[senders[edges]]),
        receivers=np.where(edges < 0, -1, node_places[receivers[edges]] % BLOCK),
        node_places=node_places,
        edge_places=inverse(edges.reshape(-1), game.num_edges),
    )


def divide(degrees: np.ndarray, noise: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Nodes by tile, or -1, of `shape`: those of most edges first, each to the tile that has fewest."""
    nodes = np.full(shape, -1, np.int32)
    for node in np.argsort(-degrees * noise):
        has_place = (nodes < 0).any(axis=1)
        tile = np.argmin(np.where(has_place, edges_of_tiles(degrees, nodes), np.inf))
        nodes[tile, np.argmax(nodes[tile] < 0)] = node
    return nodes


def edges_of_tiles(degrees: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """The number of edges into the nodes of each tile."""
    return np.where(nodes < 0, 0, degrees[nodes]).sum(axis=1)


def power_of_two(number: int) -> int:
    """The least power of 2 that is not below `number`."""
    return 1 << (int(number) - 1).bit_length()


def inverse(items: np.ndarray, count: int) -> np.ndarray:
    """The place of each of `count` items, int32 [count]."""
    places = np.zeros(count, np.int32)
    places[items[items >= 0]] = np.flatnonzero(items >= 0)
    return places
