"""A Chromium without a window that tests drive, by the Chrome DevTools Protocol."""

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markup import CHROMIUM
from websockets.sync.client import ClientConnection, connect

FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars"
PATIENCE = 120.0  # seconds, on a busy machine


@dataclass
class Page:
    """A page of the browser; `faults` are the errors that it wrote, `asked` the addresses that it asked for."""

    socket: ClientConnection
    session: str
    faults: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    number: int = 0

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a method of the protocol; events that come before it are looked at."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        self.socket.send(json.dumps(message | ({"sessionId": self.session} if self.session else {})))
        while True:
            answer = json.loads(self.socket.recv(timeout=PATIENCE))
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._look_at(answer)

    def _look_at(self, event: dict[str, Any]) -> None:
        given = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            self.asked.add(given["request"]["url"])
        if event["method"] == "Runtime.exceptionThrown":
            self.faults.append(json.dumps(given["exceptionDetails"])[:500])
        elif event["method"] == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.faults.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")

    def do(self, script: str) -> Any:
        """What an expression is worth, a promise awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, condition: str) -> Any:
        """The value of an expression once it is true."""
        end = time.monotonic() + PATIENCE
        while not (value := self.do(condition)):
            assert time.monotonic() < end, f"waited in vain for {condition}; {self.do('document.body.innerText')}"
            time.sleep(0.05)
        return value

    def open(self, address: str) -> None:
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=address)
        self.wait(f"location.href.startsWith({json.dumps(address)}) && document.readyState === 'complete'")

    def look(self, width: int, height: int, scheme: str = "light", scale: float = 1) -> None:
        """As a window of this size and color scheme."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, whole: bool = False) -> bytes:
        """A PNG of what is seen, or of the `whole` page."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def key(self, name: str, text: str = "") -> None:
        """A key pressed and released."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, text=text if kind == "keyDown" else "")

    def mouse(self, *selectors: str) -> None:
        """The mouse pressed on an element, moved over others, and released on the last."""
        for selector in selectors:
            box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
            x, y = self.do(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({box})")
            self._mouse("mouseMoved", x, y)
            if selector == selectors[0]:
                self._mouse("mousePressed", x, y)
        self._mouse("mouseReleased", x, y)

    def _mouse(self, kind: str, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)


@contextmanager
def browsing(folder: Path) -> Iterator[Page]:
    """A page of a browser of its own, closed afterwards."""
    words = [str(CHROMIUM), *FLAGS.split(), f"--user-data-dir={folder / 'profile'}", "--remote-debugging-port=0"]
    with subprocess.Popen([*words, "about:blank"], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            lines = (line for line in process.stderr if "DevTools listening on " in line)
            address = next(lines).partition("listening on ")[2].strip()
            with connect(address, max_size=2**27, open_timeout=PATIENCE) as socket:
                browser = Page(socket, "")
                target = browser.call("Target.createTarget", url="about:blank")["targetId"]
                session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
                yield Page(socket, session, number=1000)
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)
