"""Serves games and a network's view of them to a browser on this machine; no game is stored.

Each request brings its game whole, so that two pages meet only in the queue for a network. The page is the only one
answered: another Host (as after DNS rebinding) or Origin is refused, and the page's policy lets it request nothing
elsewhere. A search ends when its page goes.
"""

import json
import math
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import uvicorn
from anyio import from_thread, to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from alphagateau.matches.specs import PlayerError, PlayerSpec
from alphagateau.play.board import view
from alphagateau.play.board.connections import MAX_CONNECTIONS, BoundedConnection
from alphagateau.play.board.files import files
from alphagateau.play.board.games import games_of, pgn_of, positions
from alphagateau.play.board.requests import MAX_BODY, GameRequest, PgnRequest, read, read_request
from alphagateau.play.board.view import Engine
from alphagateau.runs.checkpoint import CheckpointError

MAX_SEARCHES = MAX_CONNECTIONS - 16  # at once; the other connections are for the page, its files and its games
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(eq=False)
class Networks:
    """The checkpoints, and those of their networks that have been compiled: at most one for each board."""

    players: Sequence[PlayerSpec]
    engines: dict[tuple[int, str], Engine] = field(default_factory=dict)
    loading: anyio.Lock = field(default_factory=anyio.Lock)
    num_searches: int = 0  # in progress, or waiting for their turn

    async def engine(self, request: GameRequest) -> Engine:
        """Compiled, where it is not yet. Raises CheckpointError."""
        key = request.player, request.board
        async with self.loading:
            if key not in self.engines:
                player = self.players[request.player]
                self.engines[key] = await to_thread.run_sync(view.load_engine, player, request.board)
        return self.engines[key]


Answer = Callable[[Networks, bytes], Awaitable[ASGIApp]]


def make_app(players: Sequence[PlayerSpec], port: int) -> ASGIApp:
    """The application for the page at this port of 127.0.0.1."""
    networks = Networks(players)
    served = {path: Response(content, media_type=kind) for path, (content, kind) in files(players).items()}
    routes = [Route(path, response, methods=["GET"]) for path, response in served.items()]
    for name, answer in ANSWERS.items():
        routes.append(Route(f"/{name}", partial(_answer, networks, answer), methods=["POST"]))
    return guard(Starlette(routes=routes), port)


def make_server(players: Sequence[PlayerSpec], listener: socket.socket) -> uvicorn.Server:
    """What serves the page at a socket, once it is run with it."""
    app = make_app(players, listener.getsockname()[1])
    quiet: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False}
    plain: dict[str, Any] = {"http": BoundedConnection, "ws": "none", "lifespan": "off", "proxy_headers": False}
    return uvicorn.Server(uvicorn.Config(app, limit_concurrency=MAX_CONNECTIONS, **quiet, **plain))


def guard(app: ASGIApp, port: int) -> ASGIApp:
    """The same for requests of its own page only, with what a browser must know to keep it so."""
    hosts = [f"127.0.0.1:{port}", f"localhost:{port}"] + (["127.0.0.1", "localhost"] if port == 80 else [])

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY)
            await send(message)

        fault = _stranger(Headers(scope=scope), scope["method"], hosts)
        answer = JSONResponse({"error": fault}, 403) if fault else app
        await answer(scope, receive, send_guarded)

    return guarded


def _stranger(headers: Headers, method: str, hosts: Sequence[str]) -> str | None:
    """Why a request is not the page's own, in one sentence; None if it may be."""
    host, origin, kind = (headers.get(name, "") for name in ("host", "origin", "content-type"))
    if host not in hosts:
        return f"the request is for host {host[:80]!r}: expected {' or '.join(hosts)}"
    if "origin" in headers and origin != f"http://{host}":
        return f"the request comes from origin {origin[:80]!r}: expected http://{host}"
    if method == "POST" and kind.partition(";")[0].strip() != "application/json":
        return f"the body of the request is {kind[:80]!r}: expected application/json, which no form can send"
    return None


async def _answer(networks: Networks, answer: Answer, request: Request) -> ASGIApp:
    """What a function makes of a body, or one sentence on what is wrong with it."""
    try:
        return await answer(networks, await _body(request))
    except HTTPException as error:
        return JSONResponse({"error": error.detail}, error.status_code)
    except (ValueError, CheckpointError, PlayerError) as error:
        return JSONResponse({"error": str(error)}, 400)


async def _body(request: Request) -> bytes:
    """A body of bounded size. Raises HTTPException for a larger one, and ValueError if its client has gone."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
                raise HTTPException(413, f"the body of the request is too large: expected at most {MAX_BODY} bytes")
    except ClientDisconnect:
        raise ValueError("the request ended before its body") from None
    return bytes(body)


async def _positions(networks: Networks, body: bytes) -> Response:
    request, game = read_request(body, len(networks.players))
    return JSONResponse(await to_thread.run_sync(positions, game, request))


async def _read_pgn(networks: Networks, body: bytes) -> Response:
    return JSONResponse(await to_thread.run_sync(games_of, read(PgnRequest, body).pgn))


async def _write_pgn(networks: Networks, body: bytes) -> Response:
    request, game = read_request(body, len(networks.players))
    return JSONResponse({"pgn": await to_thread.run_sync(pgn_of, game, request, networks.players)})


async def _evaluate(function: Callable[[Engine, GameRequest], Any], networks: Networks, body: bytes) -> Response:
    request, _ = read_request(body, len(networks.players))
    return JSONResponse(await to_thread.run_sync(function, await networks.engine(request), request))


async def _search(networks: Networks, body: bytes) -> ASGIApp:
    """A search, reported line by line in JSON while it goes on; the last line has the move."""
    request, game = read_request(body, len(networks.players))
    if networks.num_searches >= MAX_SEARCHES:
        raise HTTPException(503, f"{MAX_SEARCHES} searches wait for their turn: try again later")
    networks.num_searches += 1
    try:
        await to_thread.run_sync(positions, game, request)  # a fault of the game is reported before the answer begins
        return partial(_stream, networks, await networks.engine(request), request)
    except BaseException:
        networks.num_searches -= 1
        raise


async def _stream(
    networks: Networks, engine: Engine, request: GameRequest, scope: Scope, receive: Receive, send: Send
) -> None:
    """Runs a search in a thread once it is its turn, and sends what it reports, a line each.

    The search has its `turn` until it ends, not until its client has read the last report. If its client goes, the
    thread is stopped and awaited.
    """
    is_stopped = threading.Event()
    outlet, inlet = anyio.create_memory_object_stream[Mapping[str, Any]](math.inf)

    async def work() -> None:
        with outlet:
            async with engine.turn:
                report_fn = partial(from_thread.run_sync, outlet.send_nowait)
                searching = partial(view.search, engine, request, is_stopped.is_set, report_fn)
                try:
                    outlet.send_nowait(await to_thread.run_sync(searching))
                except (ValueError, PlayerError) as error:  # the answer has begun
                    outlet.send_nowait({"error": str(error)})

    try:
        headers = [(b"content-type", b"application/x-ndjson")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        with inlet:
            async with anyio.create_task_group() as group:
                group.start_soon(work)
                group.start_soon(_cancel_when_gone, receive, group.cancel_scope)
                try:
                    async for report in inlet:
                        line = json.dumps(report, separators=(",", ":")).encode() + b"\n"
                        await send({"type": "http.response.body", "body": line, "more_body": True})
                    await send({"type": "http.response.body", "body": b""})
                finally:
                    is_stopped.set()
                group.cancel_scope.cancel()
    finally:
        networks.num_searches -= 1


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


ANSWERS: dict[str, Answer] = {
    "positions": _positions,
    "read-pgn": _read_pgn,
    "write-pgn": _write_pgn,
    "view": partial(_evaluate, view.view),
    "attention": partial(_evaluate, view.attended),
    "search": _search,
}
