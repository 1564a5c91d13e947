"""Turns analysed games into their page (templates/analysis.html): curves, and the moves that lost much."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import chess

from alphagateau.games.pgn.analysed import JUDGEMENTS, AnalysedGame, judgements
from alphagateau.games.scores import score_text
from alphagateau.games.small_boards import board_class
from alphagateau.reports.drawing.charts import Chart, Labels, Series, line_chart
from alphagateau.reports.drawing.diagrams import Diagram, diagram
from alphagateau.reports.drawing.game_viewer import GameView, view_record, viewer_data
from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import Table, table

MAX_GAMES = 100  # on the page
MAX_SWINGS = 12  # of a game, those that lost most


class Swing(NamedTuple):
    """A move that lost much."""

    ply: int  # from 1
    label: str  # "12... Qxd5??"
    text: str
    lost: float  # winning chances, percent
    diagram: Diagram


def analysis_page(name: str, games: Sequence[AnalysedGame], num_games: int) -> str:
    """The HTML of the first games, of `num_games` analysed ones."""
    left_out = num_games - len(games)
    notes = [f"{left_out} of {num_games} games are left out of this page"] if left_out else []
    views = [_view(game, number) for number, game in enumerate(games, 1)]
    thresholds = ", ".join(f"{j.name} {j.glyph} from {j.least:g} %" for j in reversed(JUDGEMENTS))
    return render(
        "analysis.html",
        title=name,
        subtitle=f"analysed by {games[0].analyst}" if games else "no games",
        summary=summary_table(games),
        notes=notes,
        thresholds=thresholds,
        sections_of_games=[game_section(game, view.title) for game, view in zip(games, views, strict=True)],
        games=viewer_data(views),
    )


def summary_table(games: Sequence[AnalysedGame]) -> Table:
    """One row a game; what was lost as inaccuracies / mistakes / blunders."""
    rows = []
    for number, game in enumerate(games, 1):
        names = (game.record.headers.get(side, "?") for side in ("White", "Black"))
        rows.append([number, *names, game.record.result, len(game.record.moves), *_losses(game)])
    header = ["#", "White", "Black", "Result", "Plies", "White's ?! ? ??", "Black's ?! ? ??"]
    return table(header, rows)


def game_section(game: AnalysedGame, title: str) -> tuple[str, Chart | None, list[Swing], int]:
    """(title, curve, the worst swings from the first on, number of all swings) of a game."""
    found = list(_swings(game))
    worst = sorted(sorted(found, key=lambda swing: -swing.lost)[:MAX_SWINGS])
    return title, _curve(game, found), worst, len(found)


def _losses(game: AnalysedGame) -> tuple[str, str]:
    """Inaccuracies / mistakes / blunders of White and of Black."""
    counts = {True: Counter(), False: Counter()}
    for ply, judgement in enumerate(judgements(game)):
        counts[(ply % 2 == 0) == game.record.white_begins][judgement.name if judgement else ""] += 1
    white, black = (" / ".join(str(counts[side][j.name]) for j in reversed(JUDGEMENTS)) for side in (True, False))
    return white, black


def _curve(game: AnalysedGame, swings: Sequence[Swing]) -> Chart | None:
    """White's winning chances after each ply, with a line at each swing."""
    if not game.record.moves:
        return None
    series = Series("White's winning chances", list(range(len(game.scores))), game.chances)
    marks = [(float(swing.ply), f"{swing.label}: {swing.text}") for swing in swings]
    labels = Labels("White's winning chances", x="ply", y="%")
    return line_chart([series], labels, levels=[("", 50.0), ("", 0.0), ("", 100.0)], marks=marks, kind="wide")


def _swings(game: AnalysedGame) -> Iterator[Swing]:
    board, chances = board_class(game.record.game)(game.record.start_fen), game.chances
    for ply, (uci, judgement) in enumerate(zip(game.record.moves, judgements(game), strict=True)):
        move, best = chess.Move.from_uci(uci), game.best[ply]
        if judgement:
            label = f"{board.fullmove_number}{'.' if board.turn else '...'} {board.san(move)}{judgement.glyph}"
            scores = " to ".join(score_text(score) for score in game.scores[ply : ply + 2])
            better = f"; {board.san(chess.Move.from_uci(best))} was best" if best else ""
            lost = abs(chances[ply + 1] - chances[ply])
            text = f"{judgement.name}, {scores}, {lost:.0f} % of winning chances{better}"
            yield Swing(ply + 1, label, text, lost, diagram(board.fen(), label, [(best, "best"), (uci, "played")]))
        board.push(move)


def _view(game: AnalysedGame, number: int) -> GameView:
    """For the page's board, each move with its glyph."""
    view, glyphs = view_record(game.record, number), (one.glyph if one else "" for one in judgements(game))
    return view._replace(moves=[move + glyph for move, glyph in zip(view.moves, glyphs, strict=True)])
