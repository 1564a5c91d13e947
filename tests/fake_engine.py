"""A UCI engine of a few lines for tests: its scores are hashes of FEN and move, its manner is told.

One that remembers adds how many searches it has made since it was told to forget them.
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
    move = moves[0] if moves else first_move(fen)
    found = score(fen, moves[0] if moves else "") + remembered
    bound = f"info depth 9 seldepth 9 score cp {found + 1} upperbound nodes {nodes}\n"
    return f"info depth 7 seldepth 12 score cp {found} nodes {nodes} pv {move}\n{bound}bestmove {move}\n"


def first_move(fen: str) -> str:
    from alphagateau.games.small_boards import GardnerBoard

    return min(move.uci() for move in GardnerBoard(fen).legal_moves)


def main(manner: str = "", trigger: str = "") -> None:
    fen, searches = "", 0
    for line in sys.stdin:
        words = line.split()
        if words[0] == "uci":
            if manner == "silent":
                time.sleep(60)
            print(f"id name Fake\n{VARIANTS}\n{OPTIONS}\nuciok")
        elif words[0] == "isready":
            print("No such option: Limit\nreadyok" if manner == "deny" else "readyok")
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
            print(answer(fen, int(words[2]), moves, searches if manner == "remember" else 0), end="")
            searches += 1
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
