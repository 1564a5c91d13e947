"""What a stranger's checkpoint names of programs and paths is not used, and no name leads a folder elsewhere."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Literal

import pytest
from tiny_checkpoints import save_tiny

import alphagateau
from alphagateau import config
from alphagateau.commands.main import main
from alphagateau.config import NETWORKS, SEARCHES, ConfigError, fields_of
from alphagateau.config.records import PROGRAM_OR_PATH, choice, program_or_path, record
from alphagateau.config.registers import SearchConfig, SearchMethod
from alphagateau.matches import player_specs
from alphagateau.matches.specs import parse_spec
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.play.opponents import find_player
from alphagateau.runs import checkpoint, newest, run_record
from alphagateau.search.baselines import make_policy_search
from alphagateau.search.config import StateValueConfig

DECLARED = [
    (algorithm, name)
    for algorithm, kind in SEARCHES.configs.items()
    for name, field in fields_of(kind).items()
    if PROGRAM_OR_PATH in (field.json_schema_extra or {})
]
OTHER_TEXTS = {"board_statistics"}  # of a network: names of boards, which are checked


def forge(found: checkpoint.Checkpoint, **changes) -> Path:
    """The checkpoint with another manifest, well sealed; the folder."""
    checkpoint._write_manifest(found.path, {**found.manifest, **changes})
    return found.path


@pytest.fixture
def tiny(tmp_path) -> checkpoint.Checkpoint:
    newest.warn_once.cache_clear()
    return save_tiny(tmp_path / "run" / "checkpoints", "gardner_chess", GateauConfig, "2", action_values=True)


def test_every_text_of_a_search_or_a_network_is_declared_a_program_or_a_path_or_known_to_be_none():
    """A later key cannot be forgotten."""
    assert set(DECLARED) == {("probability", "split"), ("action_value", "finisher"), ("state_value", "finisher")}
    for kind in (*SEARCHES.configs.values(), *NETWORKS.configs.values()):
        texts = {name for name, field in fields_of(kind).items() if field.annotation is str}
        assert texts <= {name for _, name in DECLARED} | OTHER_TEXTS


@record
class BookConfig(SearchConfig):
    """A search of a plug-in, with a path among its keys."""

    algorithm: Literal["by_book"] = choice("", default="by_book")
    book: str = program_or_path("", default="")


@pytest.mark.parametrize(("algorithm", "name"), [*DECLARED, ("by_book", "book")])
def test_a_checkpoint_chooses_no_program_and_no_path(tiny, tmp_path, algorithm, name, monkeypatch, capsys):
    """`match`, `uci`, `play`, `board` and Python ran the command that a manifest named as its finisher."""
    monkeypatch.setitem(SEARCHES._entries, "by_book", SearchMethod("by_book", BookConfig, make_policy_search))
    search = {"algorithm": algorithm, name: f"sh -c 'touch {tmp_path / 'taken'}'"}
    path = forge(tiny, search=search)
    searches = [
        player_specs.search_of(parse_spec(str(path)), newest.newest_checkpoint(path).manifest["search"]),
        find_player(str(path)).search,
        find_player(f"{path}?search={algorithm}").search,
        player_specs.match_config(alphagateau.load(path).manifest["search"]),
    ]
    assert searches == [SEARCHES[algorithm].config()] * 4
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"names a program or a path (search.{name}), which is left out" in said
    assert not (tmp_path / "taken").exists()


def test_a_key_of_another_search_waits_for_no_user_to_choose_it(tiny):
    path = forge(tiny, search={"algorithm": "gumbel", "finisher": "sh -c true", "split": "somewhere"})
    for algorithm in ("state_value", "probability"):
        assert find_player(f"{path}?search={algorithm}").search == SEARCHES[algorithm].config()


def test_what_the_user_writes_is_taken(tiny):
    asked = f"{tiny.path}?search=state_value&finisher=stockfish"
    assert find_player(asked).search == StateValueConfig(finisher="stockfish")
    assert forge(tiny, search={"algorithm": "probability", "split": "uniform"})
    assert newest.newest_checkpoint(tiny.path).manifest["search"]["split"] == "uniform"  # a word, no path


def test_a_checkpoint_that_loses_a_part_still_names_what_is_left_out(tiny):
    """Retention wrote its manifest without the key, and nobody was told of it any more."""
    forge(tiny, search={"algorithm": "probability", "split": "somewhere"})
    checkpoint.drop_part(checkpoint.open_checkpoint(tiny.path), checkpoint.TRAINING)
    assert checkpoint.open_checkpoint(tiny.path).left_out == ("search.split",)


def test_a_published_checkpoint_hands_on_no_program(tiny, tmp_path, capsys):
    run, search = tiny.path.parents[1], {"algorithm": "state_value", "finisher": "sh -c 'touch taken'"}
    experiment = config.load(config.find_file("smoke", "experiment"))
    chosen = dataclasses.replace(experiment, search=StateValueConfig(finisher="sh -c true"))
    (run / "config.toml").write_text(config.dumps(chosen))
    run_record.write_record(run, {"starts": [], "init_from": None})
    forge(tiny, search=search, more={"finisher": "sh"})
    assert main(["publish", str(run), "small", "--folder", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err.count("search.finisher") == 1
    written = tmp_path / "out" / "small"
    assert "finisher" not in (written / "manifest.json").read_text()
    assert config.load(written / "experiment.toml").search == StateValueConfig()


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "a\nb", "a\x1b[2Jb", "a?b", "", ".hidden", "-x", " a"])
def test_a_name_that_is_no_folders_name_is_refused_by_train(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "smoke", f"--run={name}"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("alphagateau: --run ") and said.count("\n") == 1 and "\x1b" not in said
    assert not list(tmp_path.iterdir())


def test_folders_names_of_every_alphabet_are_taken():
    for name in ("my run", "läufe_1", "a[0-9]", "5x5-v2.1"):
        assert config.check_folder_name(name, "--run") == name
    with pytest.raises(ConfigError, match=r'the file is "a\\nb", expected a folder'):
        config.check_folder_name("a\nb", "the file")


def test_a_file_whose_name_has_a_line_end_gives_no_folder_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a\nb.toml").write_text('players = ["random"]')
    for words in (["train", "a\nb.toml"], ["ladder", "a\nb.toml"], ["study", "a\nb.toml"]):
        assert main(words) == 2 and capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a\nb.toml"]


def test_labels_name_no_files_elsewhere(tmp_path):
    """An engine that was a text, of which the model card asks its name, was a traceback."""
    from alphagateau.data.label_files import read_manifest
    from alphagateau.data.tables import DataError

    whole = {"game": "chess", "target": "best", "engine": {}}
    elsewhere = {"parts": {"../train-0": "x"}}, {"shards": ["/etc/x.bag"]}
    for more in (*elsewhere, {"parts": 3}, {"game": "shogi"}, {"engine": "x"}):
        (tmp_path / "manifest.json").write_text(json.dumps({**whole, **more}))
        with pytest.raises(DataError, match="is no manifest of labels"):
            read_manifest(tmp_path)


def test_a_manifest_of_labels_is_a_plain_file_of_some_size(tmp_path, monkeypatch):
    from alphagateau.data import label_files

    (tmp_path / "manifest.json").symlink_to(os.devnull)
    with pytest.raises(label_files.DataError, match=r"labels: it has 0.0 kB, expected a plain file of at most 67.1 MB"):
        label_files.read_manifest(tmp_path)
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "manifest.json").write_text('{"game": "chess", "target": "best", "engine": {}}')
    monkeypatch.setattr(label_files, "MAX_BYTES", 10)
    with pytest.raises(label_files.DataError, match=r"it has 0.0 kB, expected a plain file of at most 0.0 kB"):
        label_files.read_manifest(tmp_path)


def test_an_engine_greets_and_then_refuses_weights_that_cannot_play(tiny):
    """It answered `bestmove (none)` for ever."""
    from alphagateau.commands.uci import checked_lines

    found = tiny._replace(manifest={**tiny.manifest, "weights_hash": "0" * 16})
    lines = checked_lines(found, iter(["uci\n", "setoption name Hash value 1\n", "isready\n"]))
    assert [next(lines), next(lines)] == ["uci\n", "setoption name Hash value 1\n"]
    with pytest.raises(checkpoint.CheckpointError, match="the weights do not have the hash in its manifest"):
        next(lines)
