"""A UCI engine of a few lines for tests: its scores are hashes of FEN and move, its manner is told.

One that remembers adds how many searches it has made since it was told to forget them; one of few words leaves out the
last of several moves unless it may look at 100 positions a move.
"""

import hashlib
import sys
import time

OPTIONS = """option name Hash type spin default 16 min 1 max 99
option name Clear Hash type button
option name MultiPV type spin default 1 min 1 max 500
option name Style type combo default Solid var Solid var Risky
option name Limit type check default false"""
VARIANTS = "option name UCI_Variant type combo default chess var chess var gardner"


def score(fen: str, move: str) -> int:
    """Centipawns."""
    return int.from_bytes(hashlib.sha256(f"{fen} {move}".encode()).digest()[:2], "big") % 2001 - 1000


def answer(fen: str, nodes: int, moves: list[str], remembered: int) -> str:
    move = moves[0] if moves else legal_moves(fen)[0]
    found = score(fen, moves[0] if moves else "") + remembered
    bound = f"info depth 9 seldepth 9 score cp {found + 1} upperbound nodes {nodes}\n"
    bound += f"info depth 9 seldepth 9 score cp {found + 1} wdl 45 954 1 lowerbound nodes {nodes}\n"
    return f"info depth 7 seldepth 12 score cp {found} nodes {nodes} pv {move}\n{bound}bestmove {move}\n"


def answer_lines(fen: str, nodes: int, num_lines: int) -> str:
    """The moves at depth 3, one point off, and at depth 4; then a bound on the first."""
    moves = legal_moves(fen)[:num_lines]
    shown = [(3, move, f"cp {score(fen, move) - 1}") for move in moves]
    shown += [(4, move, f"cp {score(fen, move)}") for move in moves]
    shown += [(5, moves[0], f"cp {score(fen, moves[0]) + 5} wdl 9 990 1 upperbound")]
    lines = [
        f"info depth {depth} multipv {moves.index(move) + 1} score {said} nodes {nodes} pv {move} a1a1\n"
        for depth, move, said in shown
    ]
    return "".join(lines) + f"bestmove {moves[0]}\n"


def legal_moves(fen: str) -> list[str]:
    from alphagateau.games.small_boards import board_class

    return sorted(move.uci() for move in board_class("gardner_chess")(fen).legal_moves)


def main(manner: str = "", trigger: str = "") -> None:
    fen, searches, num_lines = "", 0, 1
    for line in sys.stdin:
        words = line.split()
        if words[0] == "uci":
            if manner == "silent":
                time.sleep(60)
            options = OPTIONS.replace("max 500", "max 4") if manner == "narrow" else OPTIONS
            print(f"id name Fake\n{VARIANTS}\n{options}\nuciok")
        elif words[0] == "isready":
            print("No such option: Limit\nreadyok" if manner == "deny" else "readyok")
        elif words[:3] == ["setoption", "name", "MultiPV"]:
            num_lines = int(words[4])
        elif words[0] == "ucinewgame":
            searches = 0
        elif words[0] == "position":
            fen = line.partition("fen ")[2].strip()
        elif words[0] == "go":
            moves = words[words.index("searchmoves") + 1 :] if "searchmoves" in words else []
            if trigger in fen and manner == "crash":
                sys.exit(3)
            if trigger in fen and manner == "hang":
                time.sleep(60)
            if manner == "lie" and moves:
                moves = ["a1a1"]
            if num_lines > 1:
                nodes = int(words[2])
                shown = num_lines - 1 if manner == "few" and nodes < 100 * num_lines else num_lines
                print(answer_lines(fen, nodes, shown), end="")
            else:
                print(answer(fen, int(words[2]), moves, searches if manner == "remember" else 0), end="")
            searches += 1
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
