"""What the pages say of the code is there: tests by name, files by path."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page):
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)", page.read_text(encoding="utf-8"))
    missing = [f"{file}::{name}" for file, name in named if f"def {name}" not in text_of(ROOT / "tests" / file)]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page):
    """Paths as `networks/gateau/network.py`, from the root, the package or the tests."""
    named = set(re.findall(r"`((?:[\w.]+/)+[\w.]+\.(?:py|toml|md|sh|yaml|svg|csv))`", page.read_text(encoding="utf-8")))
    homes = (ROOT, ROOT / "alphagateau", ROOT / "tests")
    assert not [path for path in named if not any((home / path).exists() for home in homes)]


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_the_tree_of_the_layout_page_is_the_package():
    """One line each for every package and for the file beside them."""
    tree = re.findall(
        r"^      (\w+(?:/|\.py))  ", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), re.M
    )
    package = ROOT / "alphagateau"
    found = [f"{path.name}/" for path in package.iterdir() if (path / "__init__.py").exists()]
    assert sorted(tree) == sorted([*found, "builtin.py"])


def test_the_recipes_quote_the_plug_in():
    """Each block of docs/extending.md stands in examples/plugin as it is."""
    files = [*(ROOT / "examples" / "plugin").rglob("*.py"), ROOT / "examples" / "plugin" / "pyproject.toml"]
    written = "\n".join(path.read_text(encoding="utf-8") for path in files)
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w+\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) == 9 and not [block for block in blocks if block not in written]


def test_the_readme_is_short_and_its_links_are_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)|src=\"([^\"]+)", text)
    assert len(text.splitlines()) <= 150 and len(links) > 20
    assert not [link for pair in links for link in pair if link and not (ROOT / link).exists()]
