"""The configuration for lichess-bot, read as its documentation says, and the engine as that program starts and asks it.

The sections that it requires, what it checks of them and the command that it builds are those of its wiki and of the
comments in its config.yml.default; it speaks to engines through python-chess, as this test does.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import chess
import chess.engine
import pytest
import yaml
from tiny_checkpoints import save_tiny

from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.play.uci.text import options, read_option

CONFIG = Path(__file__).parents[2] / "docs" / "lichess.yml"
KEYS = {
    "": {"token", "url", "engine", "abort_time", "move_overhead", "correspondence", "challenge", "greeting"}
    | {"fake_think_time", "rate_limiting_delay", "pgn_directory", "pgn_file_grouping", "max_takebacks_accepted"}
    | {"quit_after_all_games_finish", "matchmaking"},
    "engine": {"dir", "name", "working_dir", "interpreter", "interpreter_options", "protocol", "ponder", "debug"}
    | {"engine_options", "uci_options", "xboard_options", "homemade_options", "silence_stderr"}
    | {"polyglot", "draw_or_resign", "online_moves", "lichess_bot_tbs"},
    "correspondence": {"move_time", "checkin_period", "disconnect_time", "ponder"},
    "challenge": {"concurrency", "sort_by", "preference", "accept_bot", "only_bot", "max_increment", "min_increment"}
    | {"max_base", "min_base", "max_days", "min_days", "variants", "time_controls", "modes", "block_list"}
    | {"allow_list", "recent_bot_challenge_age", "max_recent_bot_challenges", "bullet_requires_increment"}
    | {"max_simultaneous_games_per_user"},
}
CHOICES = {
    "variants": {"standard", "fromPosition", "antichess", "atomic", "chess960", "crazyhouse", "horde"}
    | {"kingOfTheHill", "racingKings", "threeCheck"},
    "time_controls": {"ultraBullet", "bullet", "blitz", "rapid", "classical", "correspondence"},
    "modes": {"casual", "rated"},
}
PLAYED = {"standard", "fromPosition"}  # of the variants


def read_config(path: Path) -> dict[str, Any]:
    """The configuration, from the folder that lichess-bot is started in. Raises ValueError where it would refuse it."""
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    for section in ("", "engine", "correspondence", "challenge"):
        found = config[section] if section else config
        if unknown := set(found) - KEYS[section]:
            raise ValueError(f"section {section!r} has {unknown}")
    engine, challenge = config["engine"], config["challenge"]
    program = Path(engine["dir"]) / engine["name"]
    checks = {
        "strings": all(isinstance(text, str) for text in (config["token"], config["url"], *map(str, [program]))),
        "protocol": engine["protocol"] in ("uci", "xboard", "homemade"),
        "folder": Path(engine["dir"]).is_dir() and Path(engine["working_dir"] or ".").is_dir(),
        "program": program.is_file() and os.access(program, os.X_OK),
        "choices": all(set(challenge[name]) <= choices for name, choices in CHOICES.items()),
        "numbers": all(type(challenge[name]) is int for name in ("concurrency", "max_base", "min_increment")),
    }
    if wrong := [name for name, is_right in checks.items() if not is_right]:
        raise ValueError(f"wrong: {wrong}")
    return config


def command(config: dict[str, Any]) -> list[str]:
    """What lichess-bot runs."""
    engine = config["engine"]
    interpreter = [engine["interpreter"], *engine["interpreter_options"]] if engine.get("interpreter") else []
    options = [
        f"--{key}" if value is None else f"--{key}={value}" for key, value in engine.get("engine_options", {}).items()
    ]
    return [*interpreter, str((Path(engine["dir"]) / engine["name"]).resolve()), *options]


@pytest.fixture
def bot_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout after README's first two commands, without what is downloaded; the current folder is lichess-bot's."""
    save_tiny(tmp_path / "checkpoints", "chess", GateauConfig).path.rename(tmp_path / "checkpoints" / "chess_strong")
    program = tmp_path / ".venv" / "bin" / "alphagateau"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m alphagateau.commands.main "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "lichess-bot"
    folder.mkdir()
    shutil.copy(CONFIG, folder / "config.yml")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return folder


def test_lichess_bot_reads_the_configuration(bot_folder: Path):
    config = read_config(bot_folder / "config.yml")
    assert set(config["challenge"]["variants"]) <= PLAYED and config["engine"]["ponder"] is False
    words = command(config)
    assert words[:2] == ["sh", "-c"] and words[-1] == str(bot_folder.parent / ".venv" / "bin" / "alphagateau")


def test_the_reader_refuses_what_lichess_bot_would(bot_folder: Path):
    text = CONFIG.read_text(encoding="utf-8")
    for old, new in (("name: ", "nane: "), (".venv/bin/", "bin/"), ("- rated", "- ratted"), ('"uci"', '"uki"')):
        (bot_folder / "config.yml").write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(ValueError, match=r"has|wrong"):
            read_config(bot_folder / "config.yml")


def test_each_option_of_the_configuration_is_one_of_the_engine():
    """python-chess, and so lichess-bot, stops at an option that an engine has not declared."""
    for name, value in yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["engine"]["uci_options"].items():
        text = str(value).lower() if isinstance(value, bool) else value
        assert name in options() and read_option(f" name {name} value {text}") == (name, value)


@pytest.mark.slow
def test_the_engine_plays_as_lichess_bot_asks_it(bot_folder: Path):
    """Starts it, sets the options, makes the first move in a fixed time, then plays by the clock."""
    config = read_config(bot_folder / "config.yml")
    board, overhead = chess.Board(), config["move_overhead"] / 1000
    popen = chess.engine.SimpleEngine.popen_uci
    with popen(command(config), timeout=120, cwd=config["engine"]["working_dir"]) as engine:
        engine.configure(config["engine"]["uci_options"])
        engine.ping()
        for limit in (chess.engine.Limit(time=1), chess.engine.Limit(white_clock=60 - overhead, black_clock=60)):
            played = engine.play(board, limit, info=chess.engine.INFO_ALL, ponder=False)
            assert played.move in board.legal_moves and {"score", "pv", "nodes", "wdl"} <= set(played.info)
            board.push(played.move)
            board.push(next(iter(board.legal_moves)))
        with pytest.raises(chess.engine.EngineError, match="SyzygyPath"):
            engine.configure({"SyzygyPath": "syzygy"})
        engine.quit()
