"""Plays a game against a network at the terminal."""

from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple

import chess

from alphagateau.games.notation import edge_to_uci, outcome, to_board
from alphagateau.games.pgn.pgn import GameRecord, Identity, player_tags, to_pgn
from alphagateau.games.pgn.san import read_move
from alphagateau.games.rules import Game
from alphagateau.play.thinking import Limits, Played, Thinker, choose, replay, think

HELP = "Type a move as Nf3 or g1f3, or: moves, undo, new, board, pgn, help, quit."
EMPTY = "·"
LETTERS = str.maketrans("♔♕♖♗♘♙♚♛♜♝♞♟" + EMPTY, "KQRBNPkqrbnp.")  # for a terminal without chess pieces


class Setup(NamedTuple):
    """How a person plays."""

    is_white: bool
    num_simulations: int  # of the network's moves; 0: the move of its highest prior
    name: str = "network"  # the network's, in PGN
    identity: Identity = Identity()  # the network's


def render(game: Game, board: chess.Board, is_white: bool) -> str:
    """The board from white's side or from black's, with its files and ranks."""
    files, ranks = range(game.size), range(game.size)[::-1]
    if not is_white:
        files, ranks = files[::-1], ranks[::-1]
    rows = []
    for rank in ranks:
        pieces = (board.piece_at(chess.square(file, rank)) for file in files)
        rows.append(f"{rank + 1}  " + " ".join(piece.unicode_symbol() if piece else EMPTY for piece in pieces))
    return "\n".join([*rows, "   " + " ".join(chess.FILE_NAMES[file] for file in files)])


def fit(text: str, encoding: str) -> str:
    """The text as a terminal of this encoding can show it: letters, where it has no chess pieces."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.translate(LETTERS)
    return text


def converse(thinker: Thinker, setup: Setup, lines_in: Iterable[str]) -> Iterator[str]:
    """Plays games until `quit` or the end of input; each text is what is to be shown next."""
    answer = _turn(thinker, setup, _start(thinker))
    yield from (HELP, *answer.texts)
    for line in lines_in:
        word = line.strip()
        if word in ("quit", "exit"):
            return
        answer = _answer(thinker, setup, answer.played, word)
        yield from answer.texts


class Answer(NamedTuple):
    """What is shown, and the game after it."""

    played: Played
    texts: tuple[str, ...]


def _start(thinker: Thinker) -> Played:
    return replay(thinker, thinker.game.start_fen, ())


def _answer(thinker: Thinker, setup: Setup, played: Played, word: str) -> Answer:
    board = to_board(thinker.game, played.state)
    if word in ("", "board"):
        return Answer(played, (render(thinker.game, board, setup.is_white),))
    if word == "help":
        return Answer(played, (HELP,))
    if word == "moves":
        return Answer(played, (" ".join(sorted(map(board.san, board.legal_moves))) or "There are none.",))
    if word == "pgn":
        return Answer(played, (_pgn(thinker.game, setup, played).rstrip(),))
    if word == "new":
        return _turn(thinker, setup, _start(thinker))
    if word == "undo":
        return _undo(thinker, setup, played)
    return _move(thinker, setup, played, word)


def _pgn(game: Game, setup: Setup, played: Played) -> str:
    """The game so far, to be saved or pasted elsewhere."""
    human, network = ("White", "Black") if setup.is_white else ("Black", "White")
    tags = player_tags(human, "Human", Identity(type="human")) | player_tags(network, setup.name, setup.identity)
    headers = {"Event": "alphagateau play", "Site": "?", "Date": f"{date.today():%Y.%m.%d}", "Round": "-", **tags}
    result, reason = outcome(game, played.state)
    reason = reason if result != "*" else ""
    return to_pgn(GameRecord(game.name, played.fen, tuple(played.moves), result, reason, headers))


def _undo(thinker: Thinker, setup: Setup, played: Played) -> Answer:
    own = [ply for ply in range(len(played.moves)) if (ply % 2 == 0) == setup.is_white]
    if not own:
        return Answer(played, ("There is no move to take back.",))
    return _turn(thinker, setup, replay(thinker, played.fen, played.moves[: own[-1]]))


def _move(thinker: Thinker, setup: Setup, played: Played, word: str) -> Answer:
    if ending := _ending(thinker.game, played):
        return Answer(played, ending)
    try:
        move = read_move(to_board(thinker.game, played.state), word).uci()
    except ValueError:
        return Answer(played, (f"{word[:20]!r} is no legal move here: `moves` lists them, `help` says more.",))
    return _turn(thinker, setup, replay(thinker, played.fen, [*played.moves, move], played))


def _turn(thinker: Thinker, setup: Setup, played: Played) -> Answer:
    """The network's move, if it is its turn, the board, and the end of the game if it has come."""
    texts, game = (), thinker.game
    is_persons = (int(played.state.color) == 0) == setup.is_white
    if not is_persons and not _ending(game, played):
        played, texts = _reply(thinker, setup, played)
    shown = render(game, to_board(game, played.state), setup.is_white)
    return Answer(played, (*texts, shown, *_ending(game, played)))


def _ending(game: Game, played: Played) -> tuple[str, ...]:
    """The sentence on a game that is over; empty for one that goes on."""
    result, reason = outcome(game, played.state)
    return () if result == "*" else (f"The game is over, {result} by {reason}: undo, new or quit.",)


def _reply(thinker: Thinker, setup: Setup, played: Played) -> Answer:
    think(thinker, played, Limits(setup.num_simulations))
    line, board = choose(thinker, played), to_board(thinker.game, played.state)
    assert line  # of a game that goes on
    move = edge_to_uci(thinker.game, board, line.edges[0])
    color = chess.COLOR_NAMES[board.turn]
    view = f"value {line.value:+z.2f}"
    if line.mate is not None:
        view = f"{'mate' if line.mate > 0 else 'mated'} in {(abs(line.mate) + 1) // 2}"
    view += "" if thinker.evaluate_root else f", {line.visits} visits"
    text = f"{color} plays {board.san(chess.Move.from_uci(move))} ({view})"
    return Answer(replay(thinker, played.fen, [*played.moves, move], played), (text,))
