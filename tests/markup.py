"""What tests of pages share: hostile names, the outline of a page, and the page as a browser has it."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from alphagateau.reports.drawing import pages

HOSTILE = """</script x><!--<script ><script>document.title="taken"</script><img src=x onerror=go()>"""
HOSTILE += """"'`&amp;\x00\ud800${1}"""
SHOWN = HOSTILE.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
VOID = {"meta", "link", "br", "img", "input", "wbr"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync --virtual-time-budget=3000 --dump-dom"
browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


def drawn(template: str, macro: str, *data) -> str:
    """What a macro of a template makes of data."""
    return getattr(pages.environment().get_template(template).module, macro)(*data)


class Outline(HTMLParser):
    """Tags, attributes and texts of a page; fails on a tag that is closed out of order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def dom_of(page: str, folder, fragment: str = "", driver: str = "") -> str:
    """The page as Chromium has it after loading and after `driver`, a script that the policy then allows."""
    if driver:
        page = re.sub("script-src 'sha256-[^']+'", "script-src 'unsafe-inline'", page)
        page = page.replace("</body>", f"<script>{driver}</script></body>")
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS.split(), f"--user-data-dir={folder / 'profile'}", path.as_uri() + fragment]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    opening = re.search("<html[^>]*>", done.stdout)
    assert opening and "data-error" not in opening[0], opening
    return done.stdout


def said_by(dom: str) -> dict:
    """What a driver put into the title."""
    title = re.search("<title>(.*?)</title>", dom)
    assert title
    return json.loads(html.unescape(title[1]))
