"""The server of the board, asked over a socket as a browser and a stranger ask it."""

import dataclasses
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import chess
import numpy as np
import pytest
import uvicorn
from serving import serving
from tiny_checkpoints import save_tiny
from uvicorn.server import ServerState

from alphagateau.games.entries import GAMES
from alphagateau.games.pgn.pgn import read_pgn
from alphagateau.games.variants import get_game
from alphagateau.matches.specs import PlayerError, PlayerSpec
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.play.board import view
from alphagateau.play.board.connections import MAX_CONNECTIONS, PATIENCE, BoundedConnection
from alphagateau.play.board.files import setup_of
from alphagateau.play.board.requests import MAX_BODY, read_request
from alphagateau.play.board.server import ANSWERS, MAX_SEARCHES, SECURITY
from alphagateau.play.opponents import plays
from alphagateau.play.thinking import Thinker
from alphagateau.runs.checkpoint import Checkpoint
from alphagateau.search.growing.tree import Leaves

GARDNER = {"board": "gardner_chess"}
MATE = {"board": "chess", "moves": ["f2f3", "e7e5", "g2g4", "d8h4"]}


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A GATEAU of the 5x5 board."""
    return save_tiny(tmp_path_factory.mktemp("board"), "gardner_chess", GateauConfig)


@pytest.fixture(scope="module")
def port(found: Checkpoint) -> Iterator[int]:
    """A server with it, and with one that says to be of another architecture."""
    manifest = {**found.manifest, "network": dataclasses.asdict(AlphaZeroConfig())}
    with serving([found, found._replace(manifest=manifest)]) as port:
        yield port


def request(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def ask(port: int, path: str, body: Any) -> Answer:
    """As the page asks."""
    return request(port, "POST", path, json.dumps(body).encode(), Content_Type="application/json")


def said(answer: Answer, status: int = 400) -> str:
    """The one sentence of a refusal."""
    assert answer.status == status, answer
    (text,) = answer.json().values()
    assert text and len(text.splitlines()) == 1 and len(text) < 400
    return text


def test_one_checkpoint_under_two_searches_has_two_names(found: Checkpoint):
    path = str(found.path)
    specs = [PlayerSpec(path + text, path, checkpoint=found) for text in ("", "?search=policy")]
    first, second = (player["name"] for player in setup_of(specs)["players"])
    assert second == f"{first}?search=policy"


def test_the_page_names_nothing_outside_itself(port: int):
    page = request(port, "GET", "/").body.decode()
    assert "<script>" not in page and "style=" not in page and "://" not in page
    scripts = re.findall(r'<script src="(.*?)" defer>', page)
    assert len(scripts) == 6
    for path in (*scripts, "/board.css"):
        assert path in page
        text = request(port, "GET", path).body.decode()
        assert "@import" not in text and "url(" not in text and "innerHTML" not in text
        assert "://" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("path", ["/", "/state.js", "/board.css", "/none", "/../../etc/passwd", "/view"])
def test_every_answer_has_the_policy(port: int, path: str):
    answer = request(port, "GET", path)
    assert answer.status == {"/none": 404, "/../../etc/passwd": 404, "/view": 405}.get(path, 200)
    assert {name: answer.headers.get(name.lower()) for name in SECURITY} == SECURITY
    policy = SECURITY["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert "access-control-allow-origin" not in answer.headers and "server" not in answer.headers


def test_another_host_or_origin_is_refused(port: int):
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"[::1]:{port}", ""):
        assert "expected 127.0.0.1:" in said(request(port, "GET", "/", Host=host), 403)
    own = f"127.0.0.1:{port}"
    for origin in ("http://evil.example", "null", f"https://{own}", f"http://localhost:{port}", f"http://{own}.evil"):
        for method, path in (("GET", "/"), ("POST", "/positions")):
            assert "origin" in said(request(port, method, path, Origin=origin), 403)
    for host in (own, f"localhost:{port}"):
        assert request(port, "GET", "/", Host=host, Origin=f"http://{host}").status == 200


@pytest.mark.parametrize("path", sorted(ANSWERS))
def test_a_form_of_another_page_cannot_ask(port: int, path: str):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = request(port, "POST", f"/{path}", json.dumps(GARDNER).encode(), Content_Type=kind)
        assert "expected application/json" in said(answer, 403)


def test_a_body_that_is_too_large_is_refused(port: int):
    assert "too large" in said(
        request(port, "POST", "/view", b" " * (MAX_BODY + 1), Content_Type="application/json"), 413
    )
    assert said(request(port, "POST", "/view", b" " * MAX_BODY, Content_Type="application/json"))


def test_a_body_that_never_ends_is_refused(port: int):
    """Without a length, in chunks."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall(
            f"POST /view HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        for _ in range(MAX_BODY // 2**16 + 1):
            line.sendall(b"10000\r\n" + b" " * 2**16 + b"\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 413 ")


def half_request(port: int) -> socket.socket:
    """A socket that has sent a request without its end."""
    line = socket.create_connection(("127.0.0.1", port), timeout=60)
    line.sendall(f"POST /view HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 9\r\n".encode())
    return line


def test_half_sent_requests_keep_no_page_from_loading(port: int):
    """The ones that have waited longest give up their places."""
    with ExitStack() as held:
        lines = [held.enter_context(half_request(port)) for _ in range(2 * MAX_CONNECTIONS)]
        assert request(port, "GET", "/").status == 200
        with suppress(ConnectionResetError):
            assert lines[0].recv(1) == b""


def test_only_a_client_that_is_waited_for_runs_out_of_time():
    """A request in two parts of its head and two of its body, then an answer that is not read and is read."""
    loop, transport = Mock(), Mock(**{"get_extra_info.return_value": None})
    loop.create_task.side_effect = lambda coroutine: coroutine.close() or Mock()
    connection = BoundedConnection(uvicorn.Config(Mock(), lifespan="off"), ServerState(), {}, loop)
    connection.connection_made(transport)
    for part in (b"POST / HTTP/1.1\r\nHo", b"st: a\r\nContent-Length: 2\r\n\r\n1"):
        connection.data_received(part)
        loop.call_later.assert_called_once_with(PATIENCE, transport.abort)
        loop.call_later.return_value.cancel.assert_not_called()
    connection.data_received(b"2")
    loop.call_later.return_value.cancel.assert_called_once()
    connection.pause_writing()
    assert loop.call_later.call_count == 2
    connection.resume_writing()
    assert loop.call_later.return_value.cancel.call_count == 2


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (GARDNER | {"fen": "8/8 w"}, "has 2 fields: expected 6"),
        (GARDNER | {"fen": chess.STARTING_FEN}, "expected 5 rows"),
        (GARDNER | {"fen": "rnbqk/ppppp/5/PPPPP/RNBQ1 w - - 0 1"}, "white has no king"),
        (GARDNER | {"moves": ["e2e4"]}, "move 1, 'e2e4': expected a legal move of rnbqk"),
        (GARDNER | {"moves": ["b1c3", "\x00" * 1000]}, "move 2, "),
        (GARDNER | {"moves": ["b1c3"], "since": 2}, "since is 2: expected at most"),
        (GARDNER | {"moves": ["a2a3"] * 1025}, "1025 moves: expected at most 1024"),
        (GARDNER | {"moves": "b1c3"}, "moves must be an array"),
        (GARDNER | {"moves": [7]}, "moves must be an array"),
        (GARDNER | {"player": 2}, "player is 2: expected less than 2"),
        (GARDNER | {"player": -1}, "player must be an integer"),
        (GARDNER | {"simulations": 10**9}, "simulations must be an integer from 0 to 20000"),
        (GARDNER | {"simulations": 1.5}, "simulations must be an integer"),
        (GARDNER | {"sims": 3}, 'unknown key "sims"'),
        ({"board": "go"}, "board is 'go': expected one of chess, gardner_chess"),
        ({}, "board is ''"),
        ([], "is a JSON list: expected an object"),
        (None, "is a JSON NoneType: expected an object"),
    ],
)
def test_what_is_wrong_with_a_request_is_said_in_a_sentence(port: int, body: Any, expected: str):
    for path in ("/positions", "/write-pgn", "/search"):
        assert expected in said(ask(port, path, body))


def test_a_body_that_is_no_json_is_said_to_be_none(port: int):
    for body in (b"", b"{", b"\xff\xfe", b"[" * 100_000):
        answer = request(port, "POST", "/positions", body, Content_Type="application/json")
        assert "is no JSON" in said(answer)


def test_positions_are_those_of_the_rules(port: int):
    """Fool's mate: FENs, SAN and the end; then its last ply alone."""
    found = ask(port, "/positions", MATE).json()
    assert [one["san"] for one in found] == ["", "f3", "e5", "g4", "Qh4#"]
    board = chess.Board()
    for one in found:
        if one["uci"]:
            board.push_uci(one["uci"])
        assert one["fen"] == board.fen()
        assert one["legal"] == {move.uci(): board.san(move) for move in board.legal_moves}
    assert (found[-1]["result"], found[-1]["reason"], found[-1]["check"]) == ("0-1", "checkmate", True)
    assert ask(port, "/positions", MATE | {"since": 4}).json() == found[-1:]


def test_a_pgn_is_read_and_written(port: int):
    moves = ["b1c3", "b4c3"]
    written = ask(port, "/write-pgn", {**GARDNER, "moves": moves, "white": 'A "x"]\n', "black": "B"}).json()["pgn"]
    (record,) = read_pgn(written)
    assert (record.moves, record.game, record.result, record.headers["Black"]) == (
        tuple(moves),
        "gardner_chess",
        "*",
        "B",
    )
    (game,) = ask(port, "/read-pgn", {"pgn": written}).json()
    assert (game["board"], game["moves"], game["black"]) == ("gardner_chess", moves, "B")
    assert 'Termination "checkmate"' in ask(port, "/write-pgn", MATE).json()["pgn"]
    for text, expected in (("", "holds no game"), ("1. e5", "PGN game 1"), ('[Variant "Go"]\n\n*', "variant 'go'")):
        assert expected in said(ask(port, "/read-pgn", {"pgn": text}))


def test_a_saved_game_says_who_played_and_what_was_thought(port: int):
    """White is the first checkpoint; 0.5 is half way to a win: 298 centipawns."""
    asked = {**GARDNER, "moves": ["b1c3", "b4c3"], "values": [0.5], "simulations": 9}
    asked |= {"white_player": 0, "black": "Human", "result": "1-0"}
    written = ask(port, "/write-pgn", asked).json()["pgn"]
    (record,) = read_pgn(written)
    assert "[%eval 2.98]" in written and len(record.notes) == 1
    assert record.headers["WhiteSearch"] == "growing gumbel 9 simulations" and len(record.headers["WhiteWeights"]) == 16
    assert record.headers["BlackType"] == "human" and "BlackWeights" not in record.headers and record.result == "1-0"
    named = ask(port, "/write-pgn", {**GARDNER, "moves": [], "white": "0", "black": "1"}).json()["pgn"]
    assert '[White "0"]' in named and "WhiteWeights" not in named  # whose name is a number is no checkpoint
    for values in ([0.1] * 3, [1.5], [float("nan")]):
        assert "expected one in [-1, 1] a move" in said(ask(port, "/write-pgn", asked | {"values": values}))
    assert "values must be an array of numbers" in said(ask(port, "/write-pgn", asked | {"values": ["x"]}))


def test_the_view_is_the_networks(port: int):
    """Values of the whole game and of its last ply agree, as many as asked for; the policy is over the legal moves."""
    moves = ["b1a3", "b5a3", "b2a3"]
    legal = ask(port, "/positions", {**GARDNER, "moves": moves}).json()[-1]["legal"]
    found = ask(port, "/view", {**GARDNER, "moves": moves}).json()
    assert len(found["values"]) == 4 and all(-1 <= value <= 1 for value in found["values"])
    assert set(found["policy"]) == set(legal) and sum(found["policy"].values()) == pytest.approx(1)
    again = ask(port, "/view", {**GARDNER, "moves": moves, "since": 2}).json()
    assert again["values"] == pytest.approx(found["values"][2:]) and again["policy"] == pytest.approx(found["policy"])


def search(port: int, body: Any) -> list[dict[str, Any]]:
    answer = ask(port, "/search", body)
    assert answer.status == 200 and answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.body.splitlines()]


def test_a_search_tells_of_every_move_and_answers_with_one(port: int):
    legal = ask(port, "/positions", GARDNER).json()[0]["legal"]
    last = search(port, {**GARDNER, "simulations": 48})[-1]
    assert last["done"] == 48 == sum(one["visits"] for one in last["moves"])
    assert {one["uci"] for one in last["moves"]} == set(legal)
    assert sum(one["prior"] for one in last["moves"]) == pytest.approx(1, abs=1e-5)
    assert last["move"] == last["moves"][0]["uci"] == last["line"][0]["uci"]
    assert last["line"][0]["san"] == legal[last["move"]]
    assert search(port, {**GARDNER, "simulations": 0})[-1]["move"] in legal
    drawn = [
        search(port, {**GARDNER, "simulations": 48, "temperature": 5, "seed": seed})[-1]["move"] for seed in range(8)
    ]
    assert len(set(drawn)) > 1 and set(drawn) <= set(legal)


def test_values_are_whites(port: int):
    """Mate in one, for either side to move; and a game that is over."""
    for side, sign in (("w", 1), ("b", -1)):
        fen = f"4k/1Q3/4K/5/5 {side} - - 0 1" if side == "w" else "4K/1q3/4k/5/5 b - - 0 1"
        last = search(port, {**GARDNER, "fen": fen, "simulations": 64})[-1]
        assert last["value"] == sign and last["moves"][0]["mate"] == sign
        over = {**GARDNER, "fen": fen, "moves": [last["move"]]}
        assert ask(port, "/view", over).json() == {"values": [pytest.approx(0, abs=1), sign], "policy": {}}
        assert search(port, over)[-1]["move"] is None


def test_two_games_do_not_disturb_each_other(port: int):
    """Two searches at a time find what each finds alone."""
    bodies = [{**GARDNER, "simulations": 64, "moves": moves} for moves in ([], ["b1c3"], ["e2e3"])]
    alone, found = [search(port, body)[-1] for body in bodies], {}
    threads = [
        threading.Thread(target=lambda i=i: found.setdefault(i, search(port, bodies[i % 3])[-1])) for i in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(6)] == alone * 2


def test_a_search_ends_when_its_page_goes(port: int, monkeypatch: pytest.MonkeyPatch):
    """One that would never end; and so does one that waits for its turn, and the next one is answered."""
    search(port, {**GARDNER, "simulations": 0})
    began, ended, real = threading.Event(), threading.Event(), view.think

    def endless(thinker, played, limits, watch):
        began.set()
        while not watch.is_stopped():
            time.sleep(0.01)
        ended.set()
        return real(thinker, played, limits, watch)

    monkeypatch.setattr(view, "think", endless)
    lines = [open_search(port), open_search(port)]
    assert began.wait(60) and not ended.is_set()
    lines[1].close()
    lines[0].close()
    assert ended.wait(60)
    monkeypatch.setattr(view, "think", real)
    assert search(port, {**GARDNER, "simulations": 16})[-1]["done"] == 16


def test_what_fails_in_a_search_is_the_last_line_of_its_answer(port: int, monkeypatch: pytest.MonkeyPatch):
    """The answer was cut off, with a traceback in the terminal."""

    def fail(*given):
        raise PlayerError("the finisher is not there")

    monkeypatch.setattr(view, "think", fail)
    assert search(port, {**GARDNER, "simulations": 4}) == [{"error": "the finisher is not there"}]


def test_a_network_without_a_finite_value_is_said():
    """JSON has no NaN, and the sentence was on that."""
    game = get_game("gardner_chess")

    def evaluate(variables, states, edges):
        logits, values = np.zeros((len(edges), game.max_legal_moves)), np.full(len(edges), np.nan)
        return Leaves(states, logits, values, np.zeros(len(edges)), np.ones(len(edges)))

    with pytest.raises(PlayerError, match="a value or a legal move's logit is not finite"):
        view._evaluate(Mock(tree=Mock(evaluate=evaluate)), [game.init()])


def test_searches_that_wait_keep_no_page_from_loading(port: int, monkeypatch: pytest.MonkeyPatch):
    """64 of them took all connections, and the page was answered with 503."""
    search(port, {**GARDNER, "simulations": 0})
    real = view.think

    def endless(thinker, played, limits, watch):
        while not watch.is_stopped():
            time.sleep(0.01)
        return real(thinker, played, limits, watch)

    monkeypatch.setattr(view, "think", endless)
    with ExitStack() as held:
        for _ in range(MAX_SEARCHES):
            held.enter_context(open_search(port))
        for path in ("/", "/state.js"):
            assert request(port, "GET", path).status == 200
        assert ask(port, "/positions", MATE).status == 200
        refused = ask(port, "/search", GARDNER)
        assert refused.status == 503 and refused.json()["error"].startswith(f"{MAX_SEARCHES} searches wait")
    monkeypatch.setattr(view, "think", real)
    while (answer := ask(port, "/search", {**GARDNER, "simulations": 16})).status == 503:
        pass  # until the server has noticed that the others have gone
    assert answer.status == 200


def open_search(port: int) -> socket.socket:
    """The socket of a search whose answer has begun."""
    body = json.dumps({**GARDNER, "simulations": 20_000}).encode()
    line = socket.create_connection(("127.0.0.1", port), timeout=60)
    line.sendall(
        f"POST /search HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    assert line.recv(100).startswith(b"HTTP/1.1 200 ")
    return line


def test_the_attention_is_the_networks(port: int):
    """After black's move, seen from white, and after white's, seen from black: in each layer 1 into each square."""
    for moves in ([], ["b1c3"]):
        found = ask(port, "/attention", {**GARDNER, "moves": moves}).json()
        game = get_game("gardner_chess")
        assert len(found["edges"]) == len(set(found["edges"])) == game.num_edges and len(found["layers"]) == 2
        for layer in found["layers"]:
            into: dict[str, int] = {}
            for edge, weight in zip(found["edges"], layer, strict=True):
                into[edge[2:4]] = into.get(edge[2:4], 0) + weight
            assert len(into) == 25 and all(abs(total - 10_000) < 30 for total in into.values())
        ahead = "a4a5n" if not moves else "a2a1n"
        assert ahead in found["edges"]


@pytest.mark.whole
def test_the_attention_of_a_chessformer_is_of_heads(tmp_path: Path):
    """In each head a square attends to all, itself too; on a board that it did not learn."""
    found = save_tiny(tmp_path, "gardner_chess", ChessformerConfig)
    assert all(plays(found, name) for name in GAMES)
    absolute = {**found.manifest, "network": {**found.manifest["network"], "position": "absolute"}}
    assert not plays(found._replace(manifest=absolute), "chess")
    with serving([found]) as port:
        for moves in ([], ["e2e4"]):
            answer = ask(port, "/attention", {"board": "chess", "moves": moves}).json()
            assert answer["heads"] == 4 and len(answer["layers"]) == 4
            assert len(set(answer["edges"])) == 64 * 64 and answer["edges"][1] == ("a2a1" if not moves else "a7a8")
            for head in answer["layers"]:
                totals: dict[str, int] = {}
                for pair, weight in zip(answer["edges"], head, strict=True):
                    totals[pair[2:]] = totals.get(pair[2:], 0) + weight
                assert len(totals) == 64 and all(abs(total - 10_000) < 64 for total in totals.values())


def test_a_network_without_edges_attends_to_none():
    asked, _ = read_request(json.dumps(GARDNER).encode(), 1)
    engine = view.Engine(Thinker(get_game("gardner_chess"), None, None), None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="has no attention"):
        view.attended(engine, asked)


def test_a_board_that_the_weights_do_not_fit_is_named(port: int):
    assert "does not play chess: the weights of its" in said(ask(port, "/view", {"board": "chess", "player": 1}))


def test_the_command_refuses_what_it_cannot_serve(
    found: Checkpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    from alphagateau.commands.main import main

    with socket.create_server(("127.0.0.1", 0)) as taken:
        for words, code, expected in (
            ([], 2, "board takes one or two checkpoints, got 0"),
            (["a", "b", "c"], 2, "got 3"),
            ([str(tmp_path / "none")], 2, "no such run or checkpoint"),
            ([str(found.path), "--port", "70000"], 2, '--port must be a whole number, from 0 to 65535, got "70000"'),
            ([str(found.path), "--port", str(taken.getsockname()[1])], 2, "choose another by --port"),
        ):
            assert main(["board", *words]) == code
            error = capsys.readouterr().err
            assert expected in error and error.count("\n") == 1


@pytest.mark.whole
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_interrupted(found: Checkpoint, number: signal.Signals):
    """In the middle of a search that would take long, and of its answer."""
    words = [sys.executable, "-m", "alphagateau.commands.main", "board", str(found.path), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        address = process.stdout.readline()
        port = int(address.partition("http://127.0.0.1:")[2].split()[0])
        assert b"AlphaGateau" in request(port, "GET", "/").body
        search(port, {**GARDNER, "simulations": 0})
        with open_search(port) as line:
            line.recv(100)
            process.send_signal(number)
            assert process.wait(timeout=60) == 0
        assert process.stderr and process.stderr.read() == ""
