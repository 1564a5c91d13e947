"""Self-contained HTML pages from plain data: a ladder's and a run's; imports no jax.

`ladder` and `report` put together the parts that `parts`, `charts` and `viewer` draw; page.css and page.js
go into every page. A page asks the network for nothing and its policy forbids it to.
"""

from alphagateau.pages.charts import CalibrationBin, Series, calibration_chart, line_chart
from alphagateau.pages.ladder import Misfit, Pair, Player, ladder_page, rating_plot
from alphagateau.pages.parts import Cell, Html, Section, cross_table, key_values, notes, page, table
from alphagateau.pages.report import Event, report_page
from alphagateau.pages.viewer import GameView, game_viewer, view_game

__all__ = [
    "CalibrationBin",
    "Cell",
    "Event",
    "GameView",
    "Html",
    "Misfit",
    "Pair",
    "Player",
    "Section",
    "Series",
    "calibration_chart",
    "cross_table",
    "game_viewer",
    "key_values",
    "ladder_page",
    "line_chart",
    "notes",
    "page",
    "rating_plot",
    "report_page",
    "table",
    "view_game",
]
