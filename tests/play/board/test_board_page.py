"""The page of the board in a browser: games to their end, each view drawn, keys, phones, what leaves the machine."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import chess
import pytest
from chromium import Page, browsing
from looking import CUT, FAINT
from markup import browser
from serving import serving
from tiny_checkpoints import save_tiny

from alphagateau.games.pgn.pgn import read_pgn
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.play.board import view

pytestmark = [browser, pytest.mark.whole]
IS_PERSONS = "(isOver(shown()) || mayMove()) && ply === last() && !thinking"
PGN = '[White "Ada"]\n[Black "Bob"]\n[Result "1-0"]\n\n1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0\n'


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server with two checkpoints of random networks, of any board."""
    folder, kinds = tmp_path_factory.mktemp("page"), {"ada": GateauConfig, "bob": ChessformerConfig}
    found = [save_tiny(folder / name / "checkpoints", "gardner_chess", kind) for name, kind in kinds.items()]
    for name in kinds:
        (folder / name / "config.toml").touch()  # by which it is a run
    with serving(found) as port:
        yield port


@pytest.fixture(scope="module")
def browsed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browsing(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture
def page(port: int, browsed: Page) -> Iterator[Page]:
    """A fresh page on the 5x5 board, where a person plays white at 16 simulations; it must end without a fault."""
    browsed.look(1280, 800)
    browsed.open(f"http://127.0.0.1:{port}/")
    browsed.wait("plies.length && find('#considered tbody').rows.length")
    choose(browsed, "#simulations", "16")
    yield browsed
    assert browsed.do("find('#fault').hidden"), browsed.do("find('#fault').textContent")
    assert not browsed.faults


def choose(page: Page, selector: str, value: str) -> None:
    """As a person chooses an option."""
    page.do(f"find({selector!r}).value = {value!r}; find({selector!r}).dispatchEvent(new Event('change'))")


def open_board(page: Page, name: str) -> None:
    choose(page, "#boards", name)
    page.wait(f"board.name === {name!r} && seen[viewer()].values[0] !== undefined")


def set_up(page: Page, fen: str) -> None:
    page.do(f"find('#open').click(); find('#given-fen').value = {fen!r}; find('#set-up button').click()")
    page.wait(f"!find('#opening').open && plies[0].fen === {fen!r} && find('#considered tbody').rows.length")


def type_move(page: Page, text: str) -> None:
    page.do(f"find('#move').value = {text!r}; find('#typed button').click()")


def square(name: str) -> str:
    return f"[data-square={name}]"


def picture(page: Page, known: list[bytes]) -> None:
    """A picture that is not empty, and none of those known."""
    taken = page.picture()
    assert len(taken) > 20_000 and taken not in known
    known.append(taken)


def test_a_game_to_its_end_on_5x5_by_mouse(page: Page):
    """The person takes what can be taken, and the network answers; the bar, the curve and the table follow."""
    pictures: list[bytes] = []
    picture(page, pictures)
    while not page.wait(IS_PERSONS) or not page.do("isOver(shown())"):
        uci = page.do("Object.entries(shown().legal).sort((a, b) => b[1].includes('x') - a[1].includes('x'))[0][0]")
        ply = page.do("ply")
        page.mouse(square(uci[:2]))
        assert page.do("document.querySelectorAll('.target').length") > 0
        page.mouse(square(uci[2:4]))
        if len(uci) > 4:
            page.wait("find('#promotion').open")
            page.mouse("#promotion button")
        page.wait(f"ply > {ply}")
    picture(page, pictures)
    record = page.do("plies[last()]")
    assert record["reason"] in page.do("find('#moves p').textContent") and record["fen"] == page.do("grid.dataset.fen")
    status = page.do("find('#status').textContent")
    assert status.endswith((" wins.", f"A draw by {record['reason']}."))
    page.wait("seen[0].values.length === plies.length && seen[1].values.length === plies.length")
    assert page.do("find('#curve .of-0').points.numberOfItems === plies.length")
    assert page.do("find('#undo').click(), mayMove()")


def test_a_game_to_its_end_on_8x8_by_typing(page: Page):
    """In SAN and UCI by turns; what is no move is said to be none."""
    open_board(page, "chess")
    choose(page, "#simulations", "0")
    type_move(page, "Ke2")
    assert page.do("find('#status').textContent") == "Ke2 is no legal move here."
    count = 0
    while not page.wait(IS_PERSONS) or not page.do("isOver(shown())"):
        find = "Object.entries(shown().legal).sort((a, b) => worth(b[1]) - worth(a[1]))[0]"
        worth = "const worth = (san) => 4 * san.includes('#') + 2 * san.includes('x') + san.includes('+')"
        uci, san = page.do(f"(() => {{ {worth}; return {find} }})()")
        ply, count = page.do("ply"), count + 1
        type_move(page, san if count % 2 else uci)
        page.wait(f"ply > {ply}")
    board = chess.Board()
    for uci in page.do("plies.slice(1).map((one) => one.uci)"):
        board.push_uci(uci)
    assert page.do("plies[last()].fen") == board.fen() and page.do("plies[last()].result") != "*"
    assert board.is_game_over(claim_draw=True)


def test_two_checkpoints_play_each_other_until_paused(page: Page):
    choose(page, "[data-seat=bottom] select", "1")
    page.wait("last() >= 4")
    assert "thinks" in page.do("find('#status').textContent")
    page.do("find('#pause').click()")
    page.wait("!thinking && !isMoving")
    ply = page.do("last()")
    time.sleep(1)
    assert page.do("last()") == ply and page.do("find('#status').textContent").endswith("Paused.")
    page.do("find('#pause').click()")
    page.wait(f"last() > {ply}")


def test_each_view_is_drawn(page: Page):
    """Policy, search, line, and the attention into one square and another, in one layer and another."""
    pictures: list[bytes] = []
    assert page.do("document.querySelectorAll('.arrow.policy').length") > 3
    picture(page, pictures)
    choose(page, "#simulations", "100")
    page.do("find('#search').click()")
    page.wait("!thinking && seen[viewer()].search[ply]?.done === 100")
    for mode, drawn in (("search", ".arrow.search"), ("line", ".arrow.line")):
        page.mouse(f"[value={mode}] + span")
        assert page.do(f"document.querySelectorAll({drawn!r}).length") > 0
        picture(page, pictures)
    visits = page.do("[...find('#considered tbody').rows].map((row) => +row.cells[2].textContent)")
    assert sum(visits) == 100 and len(visits) > 3
    rows = page.do("[...find('#considered tbody').rows].map((row) => row.cells[0].textContent)")
    assert page.do("find('#line').textContent.includes(find('#considered tbody').rows[0].cells[0].textContent)"), rows
    page.mouse("[value=attention] + span")
    page.mouse(square("c3"))
    page.wait("document.querySelectorAll('.ray').length === 24")
    assert page.do("find('#edges tbody').rows.length") == 24
    shares = page.do("[...find('#edges tbody').rows].map((row) => parseFloat(row.cells[1].textContent))")
    assert sum(shares) == pytest.approx(100, abs=3)
    picture(page, pictures)
    page.do("find('#layer').value = 2; find('#layer').dispatchEvent(new Event('input'))")
    assert page.do("find('#layer').getAttribute('aria-valuetext')") == "Layer 2 of 2: block 1, second half"
    picture(page, pictures)
    page.mouse(square("e5"))
    page.wait("find('#attention-title').textContent.startsWith('Into e5 run ')")
    picture(page, pictures)
    assert page.do("find('#heads').hidden")
    choose(page, "#viewer", "1")
    page.wait("document.querySelectorAll('.ray').length === 24 && !find('#heads').hidden")  # and the square itself
    assert page.do("find('#edges tbody').rows.length") == 25
    assert page.do("find('#layer-name').textContent") == "Layer 1 of 1"
    page.do("find('#head').value = 3; find('#head').dispatchEvent(new Event('input'))")
    assert page.do("find('#head-name').textContent") == "Head 3 of 4"
    picture(page, pictures)
    page.mouse("[value=none] + span")
    assert page.do("find('#arrows').childElementCount") == 0
    picture(page, pictures)


def test_stepping_through_a_pgn(page: Page):
    """By keys, buttons, the list of moves and the curve; then a move of one's own from the middle."""
    pictures: list[bytes] = []
    page.do(f"find('#open').click(); find('#given-pgn').value = {PGN!r}; find('#read button').click()")
    page.wait("plies.length === 8 && !find('#opening').open && seen[0].values.length === 8")
    seats = page.do("[...document.querySelectorAll('.seat select')].map((one) => one.selectedOptions[0].textContent)")
    assert seats == ["Bob", "Ada"]
    steps = {"ArrowRight": 1, "[data-go=on]": 2, "End": 7, "ArrowLeft": 6, "[data-go=first]": 0, '[data-ply="3"]': 3}
    for step, ply in steps.items():
        if step.startswith("["):
            page.mouse(step)
        else:
            page.do("document.activeElement.blur()")
            page.key(step)
        page.wait(f"ply === {ply} && seen[viewer()].policy[{ply}] !== undefined")
        picture(page, pictures)
    page.mouse("[data-go=last]")
    assert page.do("find('#value').textContent") == "1–0" and page.do("find('#source').textContent") == "checkmate"
    page.mouse("#curve")
    assert page.do("ply") == 7  # it is as long as 16 plies, and its middle the eighth
    page.do("show(4)")
    type_move(page, "Nc3")
    page.wait("plies.length === 6 && ply === 5")


def test_a_wrong_fen_or_pgn_is_said_where_it_was_given(page: Page):
    page.do("find('#open').click(); find('#given-fen').value = '8/8 w'; find('#set-up button').click()")
    assert "has 2 fields" in page.wait("find('#opening-fault').textContent")
    page.do("find('#opening-fault').textContent = ''; find('#given-pgn').value = '1. e5'; find('#read button').click()")
    assert "PGN game 1" in page.wait("find('#opening-fault').textContent")
    page.do("find('#opening').close()")
    page.faults.clear()  # the browser notes each answer that is no 200


def test_a_fen_that_is_typed_takes_the_place_of_the_old_one_and_chooses_its_board(page: Page):
    """It was appended, and a FEN of eight rows was refused on the board of five."""
    for fen, name in (("6k1/5ppp/8/8/8/8/1Q3PPP/6K1 w - - 0 1", "chess"), ("4k/P4/5/5/4K w - - 0 1", "gardner_chess")):
        page.do("find('#open').click()")
        page.call("Input.insertText", text=fen)
        page.do("find('#set-up button').click()")
        page.wait(f"!find('#opening').open && board.name === {name!r} && plies[0].fen === {fen!r}")
        page.wait("seen[viewer()].values[0] !== undefined")


def test_by_keyboard_with_a_promotion(page: Page):
    """Squares by arrow keys, Enter; the piece by Tab and Enter; taken back, turned, sides switched, saved."""
    choose(page, "[data-seat=top] select", "you")
    set_up(page, "4k/P4/5/5/4K w - - 0 1")
    page.do("cursor = 'a3'; drawBoard(); cells.a3.focus()")
    assert page.do("document.activeElement.getAttribute('aria-label')") == "a3, empty"
    page.key("ArrowUp")
    assert page.do("document.activeElement.getAttribute('aria-label')") == "a4, white pawn"
    page.key("Enter", "\r")
    assert page.do("document.activeElement.getAttribute('aria-selected')") == "true"
    page.key("ArrowUp")
    assert page.do("document.activeElement.getAttribute('aria-label')") == "a5, empty, legal move"
    page.key("Enter", "\r")
    page.wait("find('#promotion').open")
    assert page.do("[...document.querySelectorAll('#promotion button')].map((one) => one.title)") == [
        "queen",
        "rook",
        "bishop",
        "knight",
    ]
    page.key("Tab")
    page.key("Enter", "\r")
    page.wait("ply === 1")
    assert page.do("shown().san") == "a5=R+"
    assert page.do("find('#status').textContent") == "White: pawn to a5 and becomes a rook, check. Black to move."
    page.do("find('#undo').click()")
    assert page.do("last()") == 0
    assert page.do("flip(), document.querySelector('.square').dataset.square") == "e1"


def test_the_game_is_saved_as_pgn(page: Page, tmp_path: Path):
    type_move(page, "Nc3")
    page.wait("last() === 2 && !thinking && mayMove()")
    page.wait("valuesSeen().length === 2")
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.do("save()")
    end = time.monotonic() + 60
    while not (written := list(tmp_path.glob("*.pgn"))):
        assert time.monotonic() < end
        time.sleep(0.1)
    (record,) = read_pgn(written[0].read_text())
    assert record.game == "gardner_chess" and list(record.moves) == page.do("plies.slice(1).map((one) => one.uci)")
    tags = record.headers
    assert (tags["White"], tags["WhiteType"], tags["Black"]) == ("Human", "human", "ada/0")
    assert tags["BlackWeights"] == page.do("setup.players[0].hash") and len(record.notes) == len(record.moves)


def test_a_piece_is_dragged(page: Page):
    page.mouse(square("b1"), square("b2"), square("c3"))
    page.wait("last() >= 1")
    assert page.do("plies[1].uci") == "b1c3"


@pytest.mark.parametrize("name", ["gardner_chess", "chess"])
def test_it_fits_a_phone_in_dark_and_light(page: Page, name: str):
    pictures: list[bytes] = []
    open_board(page, name)
    for scheme in ("light", "dark"):
        for width in (360, 820, 1280):
            page.look(width, 740, scheme)
            assert page.do("document.documentElement.scrollWidth") <= width
            assert page.do(FAINT) == {} and page.do(CUT) == []
            sizes = page.do("[find('#frame').clientWidth, find('#frame').clientHeight]")
            assert abs(sizes[0] - sizes[1]) <= 1 and sizes[0] >= 280
            picture(page, pictures)


def test_every_control_has_a_name(page: Page):
    """As a screen reader has them."""
    kinds = {"button", "textbox", "combobox", "gridcell", "radio", "slider", "grid", "region", "progressbar"}
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    found = [(node["role"]["value"], node.get("name", {}).get("value")) for node in nodes if not node["ignored"]]
    named = [(role, name) for role, name in found if role in kinds]
    assert sum(role == "gridcell" for role, _ in named) == 25 and len(named) > 45
    assert not [role for role, name in named if not name]


def test_nothing_is_asked_of_another_machine(page: Page, port: int):
    assert page.asked and all(
        address.startswith((f"http://127.0.0.1:{port}/", "data:", "blob:")) for address in page.asked
    )


def test_a_search_ends_when_the_page_goes(page: Page, monkeypatch: pytest.MonkeyPatch):
    began, ended, real = threading.Event(), threading.Event(), view.think

    def endless(thinker, played, limits, watch):
        began.set()
        while not watch.is_stopped():
            time.sleep(0.01)
        ended.set()
        return real(thinker, played, limits, watch)

    monkeypatch.setattr(view, "think", endless)
    page.do("find('#search').click()")
    assert began.wait(60) and not ended.is_set()
    page.do("location.reload()")
    assert ended.wait(60)
    page.wait("document.readyState === 'complete' && plies.length")
