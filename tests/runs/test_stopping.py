"""Signals and deadlines: what is heard, and that a second signal does not wait."""

import os
import signal
import subprocess
import sys
import time

import pytest

from alphagateau.runs.stop import SIGNALS, StopRequest, parse_duration

BUSY = """
import hashlib, os, signal, sys
from alphagateau.runs.stop import StopRequest
stop = StopRequest()
with stop.listening():
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)  # minutes in which no bytecode runs, as in a device call
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_ends_a_process_that_is_inside_a_device_call(number):
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(number)
        assert process.wait(60) == 128 + number


def test_ctrl_c_on_a_terminal_is_answered_at_once_and_the_second_brings_the_cursor_back():
    """There was no word for as long as the device call took, and then no cursor."""
    openpty = pytest.importorskip("pty").openpty
    ours, theirs = openpty()
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=theirs) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        with os.fdopen(ours, "rb") as terminal:
            answer = terminal.readline()
            assert answer == b"stopping after what is in progress; a second Ctrl-C ends it at once\r\n"
            process.send_signal(signal.SIGINT)
            assert terminal.readline() == b"\x1b[?25h\r\n"
    os.close(theirs)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_a_reason_and_the_handlers_come_back(number):
    before = [signal.getsignal(n) for n in SIGNALS]
    stop = StopRequest()
    with stop.listening():
        assert stop.reason is None
        signal.raise_signal(number)
        wait_for(stop)
        assert stop.reason == number.name
    assert [signal.getsignal(n) for n in SIGNALS] == before


def test_a_deadline_is_a_reason():
    stop = StopRequest(0.05)
    assert stop.reason is None
    wait_for(stop)
    assert stop.reason == "the time given (0.05 s) is over"


def wait_for(stop: StopRequest) -> None:
    end = time.monotonic() + 30
    while stop.reason is None and time.monotonic() < end:
        time.sleep(0.01)


def test_durations():
    given = {"90": 90, "45s": 45, "30m": 1800, "1.5h": 5400, "2d": 172800}
    assert {text: parse_duration(text) for text in given} == given


@pytest.mark.parametrize("text", ["", "h", "0", "-1s", "inf", "nan", "1e999d", "soon"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="is not a duration: expected a number"):
        parse_duration(text)
