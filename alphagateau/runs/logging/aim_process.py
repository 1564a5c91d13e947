"""Keeps Aim up to date by a process beside the run; whatever fails in it is one warning, and the run goes on."""

import contextlib
import importlib.util
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from alphagateau.runs.files import reason
from alphagateau.runs.logging.progress import warn
from alphagateau.runs.programs import python_environment

CLOSE_SECONDS = 120  # for Aim to take what is left when the run ends


class AimProcess:
    """The process of `aim_log`. `on_open` is called once, in `poke` or `close`, with the hash of the Aim run."""

    def __init__(
        self, run: Path, aim_run: str | None, hyper_parameters: Mapping[str, Any], on_open: Callable[[str], None]
    ) -> None:
        self._on_open, self._answers = on_open, queue.SimpleQueue[dict[str, Any] | None]()
        command = [sys.executable, "-P", "-m", "alphagateau.runs.logging.aim_log"]
        request = {"run": str(run), "aim_run": aim_run, "hyper_parameters": dict(hyper_parameters)}
        self._process: subprocess.Popen[bytes] | None = None
        if importlib.util.find_spec("aim") is None:
            return self._give_up("it is not installed; there is none for Windows, nor for Python 3.13")
        try:
            self._process = subprocess.Popen(
                command,
                env=python_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # what is typed at the terminal is for the run
            )
        except OSError as error:
            return self._give_up(f"its process did not start: {error.strerror}")
        threading.Thread(target=self._receive, args=(self._process,), daemon=True).start()
        self._send(json.dumps(request).encode() + b"\n")

    def poke(self) -> None:
        """Wakes the process, as metrics.jsonl has grown; does not wait."""
        self._send(b"\n")
        with contextlib.suppress(queue.Empty):
            while self._process is not None:
                self._take(self._answers.get_nowait())

    def close(self, is_waiting: bool = True) -> None:
        """Waits, CLOSE_SECONDS at most, until Aim has all of the run; its process comes to an end by itself too."""
        if self._process is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        if not is_waiting:
            return
        deadline = time.monotonic() + CLOSE_SECONDS
        try:
            while self._process is not None:
                self._take(self._answers.get(timeout=max(deadline - time.monotonic(), 0)))
        except queue.Empty:
            self._give_up(f"it did not finish within {CLOSE_SECONDS} s")

    def _send(self, text: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):  # it has ended, and gave the reason in its last answer
                self._process.stdin.write(text)

    def _receive(self, process: subprocess.Popen[bytes]) -> None:
        """Puts its answers into the queue, and None when there will be no more."""
        with contextlib.suppress(ValueError):  # a line cut short
            for line in process.stdout or ():
                self._answers.put(json.loads(line))
        self._answers.put(None)

    def _take(self, answer: dict[str, Any] | None) -> None:
        if answer is None:
            self._give_up("its process ended")
        elif "failed" in answer:
            self._give_up(answer["failed"])
        elif "note" in answer:
            warn(answer["note"])
        elif "aim_run" in answer:
            try:
                self._on_open(answer["aim_run"])
            except (OSError, RuntimeError) as error:
                self._give_up(reason(error))
        elif self._process is not None:
            self._process.wait()
            self._process = None

    def _give_up(self, why: str) -> None:
        """The one warning."""
        warn(f"Aim failed ({why}): metrics.jsonl goes on alone, and a later start brings Aim up to date from it")
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
