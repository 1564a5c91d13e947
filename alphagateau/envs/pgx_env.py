"""pgx environments of the package's boards: on chess and gardner_chess with pgx's own actions, planes and rewards.

`env = alphagateau.make_env("gardner_chess")` in place of `env = pgx.make("gardner_chess")` is the one line to change in
a program for pgx, such as its AlphaZero example (examples/alphazero/train.py); `pgx.experimental.auto_reset` and other
wrappers of `init` and `step` work as on pgx's own.

An action is a label of `games/edges.py`, the sender's square times the number of move planes plus the plane. The
observation is float32 [rank from the top, file, planes], seen by the player to move. Its planes are 14 for each of the
last 8 positions, newest first (own pawn, knight, bishop, rook, queen, king; the opponent's; is it new in this game; is
it repeated), then color, ply / ply limit, on boards with castling the rights (own queen's side and king's side, the
opponent's two), and plies without progress / 100: 119 planes with castling, 115 without.

Three things differ from pgx: repetitions of the initial position on 8x8, and of positions after a double step that
allowed no en passant capture, count as well; after a move that no piece can make, which loses the game, the board is
another one; pgx's own drawings know none of these states, so they draw themselves.
"""

from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, cast

import chess.svg
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pgx

from alphagateau.games.moves import flip_boards
from alphagateau.games.notation import to_board
from alphagateau.games.rules import RULES_VERSION, Game
from alphagateau.games.state import HISTORY, Array, Position, State
from alphagateau.games.variants import get_game

SQUARE = 45  # of a drawing by python-chess


@flax.struct.dataclass
class PgxState(pgx.State):
    """pgx's State of one game: players 0 and 1, of whom the key of `init` draws who has the white pieces.

    `legal_action_mask` bool [A] is all True when the game is over.
    """

    _white: Array  # int32, the player with the white pieces
    _x: State
    _name: str = flax.struct.field(pytree_node=False)

    @property
    def env_id(self) -> pgx.EnvId:
        return cast(pgx.EnvId, self._name)

    def to_svg(self, *, color_theme: Literal["light", "dark"] | None = None, scale: float | None = None) -> str:
        """Draws the board, or a row of the boards of a batch, in the same colors for both themes."""
        game, states = get_game(self._name), jax.device_get(self._x)
        rows = (
            [jax.tree.map(itemgetter(i), states) for i in range(states.color.size)] if states.color.ndim else [states]
        )
        side, top = game.size * SQUARE, (8 - game.size) * SQUARE  # a small board stands in the corner of python-chess's
        drawn = [
            f'<svg x="{i * (side + SQUARE)}" width="{side}" height="{side}" viewBox="0 {top} {side} {side}">'
            f"{chess.svg.board(to_board(game, row), size=8 * SQUARE, coordinates=False)}</svg>"
            for i, row in enumerate(rows)
        ]
        width = len(rows) * (side + SQUARE) - SQUARE
        size = f'width="{width * (scale or 1.0)}" height="{side * (scale or 1.0)}" viewBox="0 0 {width} {side}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(drawn)}</svg>'

    def save_svg(self, filename: str | Path, **options: Any) -> None:
        """Writes the drawing of `to_svg`, with its options."""
        Path(filename).write_text(self.to_svg(**options), encoding="utf-8")


class PgxEnv(pgx.Env):
    """pgx's Env of a Game."""

    def __init__(self, game: Game) -> None:
        super().__init__()
        self.game = game
        self._edges = np.zeros(game.num_labels, np.int16)  # of each label; of one that is no move, any
        self._edges[game.labels] = np.arange(game.num_edges)

    @property
    def id(self) -> pgx.EnvId:
        """The game's name, whether or not it is among pgx's."""
        return cast(pgx.EnvId, self.game.name)

    @property
    def version(self) -> str:
        return f"v{RULES_VERSION}"

    @property
    def num_players(self) -> int:
        return 2

    def enter(self, x: State, white: Array | int = 0) -> PgxState:
        """The PgxState of a game in progress, such as `games.notation.from_fen` makes; `white` has the white pieces."""
        state = PgxState(
            current_player=jnp.int32(white) ^ x.color,
            observation=jnp.float32(0),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=jnp.asarray(x.terminated),
            truncated=jnp.bool_(False),
            legal_action_mask=self._legal_labels(x) | x.terminated,
            _step_count=jnp.int32(0),
            _white=jnp.int32(white),
            _x=x,
            _name=self.game.name,
        )
        return state.replace(observation=self.observe(state))  # pyright: ignore[reportAttributeAccessIssue]

    def _init(self, key: Array) -> PgxState:
        return self.enter(self.game.init(), jax.random.bernoulli(key).astype(jnp.int32))

    def _step(self, state: PgxState, action: Array, key: Array | None) -> PgxState:
        del key
        x = self.game.step(state._x._replace(terminated=jnp.bool_(False)), jnp.asarray(self._edges)[action])
        player = state._white ^ x.color
        return state.replace(  # pyright: ignore[reportAttributeAccessIssue]
            current_player=player,
            rewards=jnp.where(jnp.arange(2) == player, -x.reward, x.reward),
            terminated=x.terminated,
            legal_action_mask=self._legal_labels(x),
            _x=x,
        )

    def _legal_labels(self, x: State) -> Array:
        """Bool [A]."""
        labels = jnp.asarray(np.append(self.game.labels, self.game.num_labels))[x.legal_edges]  # -1: the last
        return jnp.zeros(self.game.num_labels, bool).at[labels].set(True, mode="drop")

    def _observe(self, state: Any, player_id: Array) -> Array:
        """[size, size, planes], of the other player's side too."""
        game, position = self.game, self.game.position(state._x)
        is_other = player_id != state.current_player
        boards = jnp.where(is_other, flip_boards(game.size, position.boards), position.boards)
        castling = jnp.where(is_other, jnp.roll(state._x.castling, 2), state._x.castling).astype(bool)
        planes = _board_planes(game, position._replace(boards=boards))
        scalars = jnp.hstack(
            [
                position.color ^ is_other,
                jnp.minimum(position.ply / game.max_plies, 1.0),
                castling if game.castlings else castling[:0],
                position.halfmove_count / 100.0,
            ]
        ).astype(jnp.float32)
        return jnp.concatenate([planes, jnp.broadcast_to(scalars, (*planes.shape[:2], len(scalars)))], axis=-1)


def _board_planes(game: Game, position: Position) -> Array:
    """float32 [size, size, 14 * HISTORY], as bits of a word a square, which on a CPU is faster than a table's rows."""
    boards = position.boards.astype(jnp.int32).reshape(HISTORY, game.size, game.size).transpose(2, 1, 0)[::-1]
    is_repeated = (position.repeated >> jnp.arange(HISTORY)) & 1
    bits = jnp.where(boards == 0, 0, jnp.where(boards > 0, 1 << (boards - 1), 1 << (5 - boards)))
    bits |= 1 << (12 + is_repeated)
    return ((bits[..., None] >> jnp.arange(14)) & 1).astype(jnp.float32).reshape(game.size, game.size, -1)
