"""Makes frames from labelled positions: samples rows of packed columns, and puts them on the devices."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagateau.config import ConfigError, DataConfig
from alphagateau.config.losses import LOSSES
from alphagateau.data.bagz import find_shards
from alphagateau.data.label_files import read_manifest
from alphagateau.data.packed import NO_VALUE, Boards, Moves, columns_of, open_packed
from alphagateau.data.tables import DataError
from alphagateau.distributed.mesh import BY_FIRST, shardings
from alphagateau.distributed.processes import on_first
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.training.frames import Frame
from alphagateau.training.labels.labelled_frames import to_frames
from alphagateau.training.labels.measures import HeldOut, choose_boards, make_held_out, spread_boards
from alphagateau.training.mirrors import mirrored_batches
from alphagateau.training.phases import Phase, Producer, RunState
from alphagateau.training.plan import BoardPlan

FEISTEL_ROUNDS = 8


class Records(NamedTuple):
    """The records of an epoch: boards, or their labelled moves."""

    number: int
    sample: Callable[[int], tuple[np.ndarray, np.ndarray | None]]  # iteration -> (rows [n], slots [n, 1] of moves)


class DataState(NamedTuple):
    """The rows of an iteration."""

    rows: Boards | Moves  # [num_shares, n, ...]


def make_data_producer(board: BoardPlan, data: DataConfig, mesh: Mesh) -> Producer:
    """The producer that `[data]` describes. Raises ConfigError if its labels cannot be read, or are of another game."""
    experiment, game, _ = board
    num_shares, share_batch = experiment.num_shares, experiment.training.batch_size // experiment.num_shares
    columns, num_frames = open_columns(data, game, experiment.training.loss), data.frames_per_iteration
    records, held_out = make_records(columns, data, experiment.seed), make_board_held_out(board, data, mesh)

    def init() -> DataState:
        shape = (num_shares, num_frames // num_shares)
        boards = Boards(**{k: jnp.zeros((*shape, *x), kind) for k, (kind, x) in columns_of(game).items()})
        return DataState(Moves(boards, jnp.zeros((*shape, 1), jnp.int16)) if data.record == "move" else boards)

    def read(state: RunState, iteration: int, segment: int) -> RunState:
        chosen, slots = records.sample(iteration)
        rows = put_rows(columns, chosen, num_shares, mesh)
        if slots is not None:
            rows = Moves(rows, put_rows(slots, np.arange(num_frames), num_shares, mesh))
        return state._replace(producer=DataState(rows))

    def batches(state: DataState, key: Array, share_ids: Array) -> Callable[[Array], Frame]:
        """The rows in order, an equal part of each share a batch."""

        def take(step: Array) -> Frame:
            def cut(x):
                part = jax.lax.dynamic_slice_in_dim(x, step * share_batch, share_batch, axis=1)
                return part.reshape(-1, *x.shape[2:])

            return to_frames(jax.tree.map(cut, state.rows), data.temperature)

        return mirrored_batches(experiment, take, game, key, share_ids)

    def metrics(state: RunState, iteration: int, seconds: Mapping[str, float]) -> dict[str, float]:
        return {
            "data/epochs": iteration * num_frames / records.number,
            "data/rows_per_second": num_frames / max(seconds.get("read", 0.0), 1e-9),
            **held_out(state.train.playing),
        }

    return Producer(
        init=init,
        specs=DataState(BY_FIRST),  # pyright: ignore[reportArgumentType]
        transient=frozenset({"rows"}),
        phases=(Phase("read", lambda _: 1, read),),
        num_batches=lambda _: num_frames // experiment.training.batch_size,
        num_new_frames=lambda _: num_frames,
        batches=batches,
        metrics=metrics,
        sample_games=lambda *_: "",
    )


def make_board_held_out(board: BoardPlan, data: DataConfig, mesh: Mesh) -> HeldOut:
    """The measure on `data.test_boards` boards that are not trained on. Raises ConfigError."""
    if not data.test_boards:
        return lambda variables: {}
    if find_shards(Path(data.path)):
        raise ConfigError(
            f"data.test_boards must be 0: data.path ({data.path}) holds shards, which have no test boards"
        )
    loss = board.experiment.training.loss
    rows = choose_boards(open_columns(data, board.game, loss, "test"), data.test_boards)
    return make_held_out(rows, board.game, board.network, LOSSES[loss].terms, data.temperature, mesh)


def open_columns(data: DataConfig, game: Game, loss: str, split: str = "train") -> Boards:
    """The labels for training, or those for tests. Raises ConfigError, also if they lack what the loss learns from."""
    labels = Path(data.path)
    try:
        manifest = read_manifest(labels)
        if manifest["game"] != game.name:
            raise ConfigError(f"data.path ({labels}) holds labels of {manifest['game']}, expected {game.name}")
        check_target(labels, manifest, loss)
        on_first(lambda: open_packed(labels, split, data.mate_value) and None, DataError)  # one process packs
        columns = open_packed(labels, split, data.mate_value)
    except DataError as error:
        raise ConfigError(f"data.path: {error}") from None
    if not len(columns.count):
        raise ConfigError(
            f"data.path ({labels}) holds no labelled board for {'tests' if split == 'test' else 'training'}"
        )
    return columns if split == "test" else spread_boards(columns, data.train_boards)


def check_target(labels: Path, manifest: Mapping[str, Any], loss: str) -> None:
    """Raises ConfigError if the labels lack what the loss learns from, as it would then be 0."""
    kind, fitting = ("shards", LOSSES[loss].shards) if "shards" in manifest else ("labels", LOSSES[loss].labels)
    if (target := manifest["target"]) not in fitting:
        expected = " or ".join(map(repr, fitting)) or "labels of `alphagateau label`"
        raise ConfigError(
            f"data.path ({labels}) holds {kind} of {target!r}, expected {expected} for training.loss {loss!r}"
        )


def make_records(columns: Boards, data: DataConfig, seed: int) -> Records:
    """The Records of `[data]`. Raises ConfigError if there are none."""
    counts, number, sampler = columns.count, data.frames_per_iteration, data.sampler
    if data.record == "board":
        return Records(len(counts), lambda iteration: (sample_rows(counts, seed, sampler, iteration, number), None))
    known = (columns.action_value != NO_VALUE).sum(axis=1)
    if not known.any():
        raise ConfigError(f'data.path ({data.path}) holds no labelled move, which data.record = "move" reads')

    def sample(iteration: int) -> tuple[np.ndarray, np.ndarray]:
        if sampler == "weighted":
            rows = sample_rows(known * counts, seed, sampler, iteration, number)
            places = np.random.default_rng([seed, iteration, 1]).integers(known[rows])
        else:
            ends = np.cumsum(known)
            moves = sample_rows(np.broadcast_to(1, ends[-1]), seed, sampler, iteration, number)
            rows = np.searchsorted(ends, moves, side="right")
            places = moves - (ends - known)[rows]
        labels_before = np.cumsum(columns.action_value[rows] != NO_VALUE, axis=1)
        return rows, (labels_before <= places[:, None]).sum(axis=1, keepdims=True).astype(np.int16)

    return Records(int(known.sum()), sample)


def sample_rows(counts: np.ndarray, seed: int, sampler: str, iteration: int, number: int) -> np.ndarray:
    """int64 [number]: the rows of an iteration, of a stream that depends on the seed alone.

    "uniform": each epoch has all rows once, in a new order; "weighted": rows are drawn by `counts`.
    """
    if sampler == "weighted":
        ends = np.cumsum(counts, dtype=np.int64)
        draw = np.random.default_rng([seed, iteration]).integers(ends[-1], size=number)
        return np.searchsorted(ends, draw, side="right")
    size, places = len(counts), np.arange(iteration * number, (iteration + 1) * number)
    epochs, found = places // size, np.empty(number, np.int64)
    for epoch in np.unique(epochs):
        found[epochs == epoch] = permute(places[epochs == epoch] % size, size, np.random.default_rng([seed, epoch]))
    return found


def permute(places: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """int64 [n]: the images of `places` [n] in a random permutation of 0 to size - 1.

    Time and memory are of n: a Feistel network permutes the bits of a place, again until it is below size.
    """
    bits = np.uint64((max(size - 1, 1).bit_length() + 1) // 2)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    keys = generator.integers(2**64, size=FEISTEL_ROUNDS, dtype=np.uint64)
    found, outside = places.astype(np.uint64), np.arange(len(places))
    while len(outside):
        left, right = found[outside] >> bits, found[outside] & mask
        for key in keys:
            left, right = right, left ^ (_mix(right + key) & mask)
        found[outside] = left << bits | right
        outside = outside[found[outside] >= size]
    return found.astype(np.int64)


def _mix(x: np.ndarray) -> np.ndarray:
    """The finalizer of SplitMix64 (Steele et al., 2014) on uint64 [n]."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def put_rows(columns: Any, chosen: np.ndarray, num_shares: int, mesh: Mesh) -> Any:
    """Rows on the devices, [num_shares, n, ...]; each process reads those of its own devices."""
    by_share, place = chosen.reshape(num_shares, -1), shardings(mesh, BY_FIRST)

    def put(column: np.ndarray) -> Any:
        shape = (*by_share.shape, *column.shape[1:])
        return jax.make_array_from_callback(shape, place, lambda index: column[by_share[index[0]]])  # pyright: ignore

    return jax.tree.map(put, columns)
