"""`alphagateau publish`: small, whole, playable from a clone, with a card of what the run's files say."""

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pretended_runs import write_iteration
from tiny_checkpoints import save_tiny

from alphagateau import config
from alphagateau.commands.info import description_of
from alphagateau.commands.main import main
from alphagateau.commands.publish import Arguments, read_run
from alphagateau.matches.player_specs import load_player
from alphagateau.matches.specs import name_of, read_spec
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.reports.model_card import (
    cost_lines,
    data_sentence,
    limit_lines,
    network_sentence,
    origin_path,
    rating_lines,
    training_lines,
)
from alphagateau.runs import checkpoint, publishing, run_folder, run_record
from alphagateau.runs.spent import Spent, find_origin, read_spent
from alphagateau.training import flops

ROOT = Path(__file__).parents[2]
START = {"command": "", "python": "", "versions": {}, "devices": ["cpu X"], "iteration": 0, "commit": "abc123"}
RATINGS = """player,rating,standard_error,games,score,lower,upper,component,method,anchor,search,protocol
engine 50,200.0,20.0,40,0.7,160,240,0,bradley-terry,random,uci,openings: 4 random plies
trained/2,123.4,20.5,40,0.5,82.4,164.4,0,bradley-terry,random,gumbel 4 simulations,openings: 4 random plies
other/2,50.0,20.0,40,0.4,10,90,0,bradley-terry,random,gumbel 4 simulations,openings: 4 random plies
random,0.0,0.0,40,0.2,0,0,0,bradley-terry,random,random,openings: 4 random plies
"""
COME_WITH_A_CLONE = sorted(path.parent for path in (ROOT / "checkpoints").glob("*/experiment.toml"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run of two iterations whose last checkpoint holds real weights."""
    run = tmp_path_factory.mktemp("published") / "trained"
    experiment = config.change(config.load(config.find_file("smoke", "experiment")), {"training.average_decay": 0.9})
    run.mkdir()
    (run / "config.toml").write_text(config.dumps(experiment))
    run_record.write_record(run, {"starts": [START], "init_from": None})
    for iteration in (1, 2):
        write_iteration(run, experiment, iteration)
    shutil.rmtree(run / "checkpoints" / "2")
    save_tiny(run / "checkpoints", "gardner_chess", GateauConfig, "2")
    return run


@pytest.fixture(scope="module")
def written(trained) -> Path:
    """The folder of the published checkpoint; tests take copies."""
    folder = trained.parent
    (folder / "ratings.csv").write_text(RATINGS)
    words = ["--folder", str(folder / "checkpoints"), "--ratings", str(folder / "ratings.csv")]
    assert main(["publish", str(trained), "small", *words, "--note", "It blunders."]) == 0
    return folder / "checkpoints" / "small"


@pytest.fixture
def published(written, tmp_path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "checkpoints" / "small"))


def test_a_published_checkpoint_is_the_runs_weights_and_experiment_alone(published, trained):
    assert {path.name for path in published.iterdir()} == {"manifest.json", "weights", "experiment.toml", "README.md"}
    assert not any(str(trained.parent).encode() in path.read_bytes() for path in published.rglob("*") if path.is_file())
    assert config.load(published / "experiment.toml") == config.load(trained / "config.toml")
    player, before = (load_player(read_spec(str(path)), "gardner_chess") for path in (published, trained))
    assert (player.name, before.name) == ("small", "trained/2")
    assert player.key == before.key and player.folder is None
    assert name_of(checkpoint.open_checkpoint(published)) == "small"


def test_the_card_says_what_the_runs_files_say(published):
    """64 frames and 4 simulations a ply an iteration, 2 s each; of the ladder, no other run's player."""
    text = (published / "README.md").read_text()
    for said in (
        "iteration 2 of 4, seed 0; an average of the weights of all steps (decay 0.9 a step)",
        "`alphagateau train checkpoints/small/experiment.toml --run small_anew --until iterations=2` trains it anew\n",
        "code of commit abc123",
        "8 games of 8 plies an iteration, searched by gumbel 4 simulations",
        "128 positions played",
        "512 simulations",
        "0.00111 device hours on cpu X",
        "bradley-terry, random at 0, ± 2 standard errors; openings: 4 random plies.",
        "| trained/2, this network | 123 ± 41 | 40 | 0.5 | gumbel 4 simulations |\n| engine 50 | 200 ± 40 |",
        "- It learnt on gardner_chess alone",
        "- It blunders.",
        "Apache-2.0",
        checkpoint.open_checkpoint(published).manifest["weights_hash"],
    ):
        assert said in text
    assert "other/2" not in text and "kWh" not in text


@pytest.mark.parametrize(
    ("origin", "said"), [(None, "gardner_chess alone;"), ("runs/pre", "gardner_chess, and before it what pre learnt;")]
)
def test_the_card_of_a_run_that_began_from_weights_says_so(origin, said):
    experiment = config.load(config.find_file("smoke", "experiment"))
    manifest = {"symptoms": [], "order": [2, 0, 0]}
    card = SimpleNamespace(experiment=experiment, record={"init_from": origin}, manifest=manifest, notes=())
    assert limit_lines(card)[0].startswith(f"- It learnt on {said}")  # pyright: ignore[reportArgumentType]


def test_the_card_of_a_checkpoint_stopped_inside_an_iteration_says_so():
    """Its command trains to the end of the iteration before, often with other weights."""
    manifest: dict[str, Any] = {"symptoms": [], "iteration": 2, "order": [2, 1, 3]}
    experiment = config.load(config.find_file("smoke", "experiment"))
    card: Any = SimpleNamespace(experiment=experiment, record={}, manifest=manifest, notes=())
    said = "- It was stopped inside iteration 3: the command above need not give these weights."
    assert limit_lines(card)[1:] == [said]
    manifest["order"] = [2, 0, 0]
    assert len(limit_lines(card)) == 1


def test_the_card_says_what_trains_it_anew():
    experiment = config.load(config.find_file("labelled_gardner", "experiment"))
    done = {"iteration": experiment.num_iterations, "weights_hash": "0"}
    card = SimpleNamespace(
        name="small",
        folder="checkpoints/small",
        experiment=experiment,
        manifest=done,
        record={"init_from": "runs/pre", "starts": []},
    )
    assert training_lines(card)[-1] == (  # pyright: ignore[reportArgumentType]
        "- experiment.toml has every key: `alphagateau train checkpoints/small/experiment.toml --run small_anew "
        "--init-from checkpoints/pre` trains it anew, with the labels in data/gardner/labels"
    )
    card.record = {"init_from": "runs/my run", "starts": []}  # for a shell
    assert "--init-from 'checkpoints/my run'`" in training_lines(card)[-1]  # pyright: ignore[reportArgumentType]
    card.record = {"init_from": "/runs/pre/checkpoints/24", "starts": []}
    assert "- began from the weights of pre/24" in training_lines(card)  # pyright: ignore[reportArgumentType]
    assert "--init-from checkpoints/pre/checkpoints/24`" in training_lines(card)[-1]  # pyright: ignore[reportArgumentType]
    assert origin_path("pre/checkpoints/5-stopped") == Path("checkpoints/pre/checkpoints/5-stopped")
    card.record = {"init_from": "checkpoints/small", "init_from_hash": "12ab", "starts": []}
    assert "anew, as it was before (weights 12ab), with" in training_lines(card)[-1]  # pyright: ignore[reportArgumentType]


def test_the_card_names_a_lesson_on_material():
    experiment = config.load(config.find_file("quickstart", "experiment"))
    assert data_sentence(experiment, {}).startswith("Its own games alone: ")
    taught = config.change(experiment, {"training.material_positions": 4096})
    assert data_sentence(taught, {}).startswith(
        "Material, on 4096 positions of random games; then its own games alone: "
    )


def test_the_card_names_who_labelled_its_data():
    experiment = config.load(config.find_file("labelled_gardner", "experiment"))
    labels = {"target": "state", "engine": {"name": "Some Engine 1", "nodes": 1000}}
    assert data_sentence(experiment, labels) == (
        "Positions labelled (state) by Some Engine 1 at 1000 nodes, data/gardner/labels: 8192 frames an iteration; "
        "no games of its own."
    )
    assert "with labels, data/gardner/labels" in data_sentence(experiment, {})
    for more, said in (
        ({"multipv": True}, " a move, all moves in one search,"),
        ({"clear": "board"}, ", its hash table"),
    ):
        assert f"at 1000 nodes{said}" in data_sentence(experiment, {**labels, "engine": labels["engine"] | more})


def test_the_card_says_what_decides_a_size_and_searches_alone_that_were_made():
    """A size of "9M" had hidden_size 0, and a match of a search without simulations 0 of them."""
    network = {"architecture": "token_transformer", "size": "9M", "hidden_size": 0, "num_blocks": 0}
    final = {"weights_hash": "a", "simulations": 0, "scores": [["iteration 8", "random", 3, 0, 1, 0]]}
    manifest = {"network": network, "parameters": 9, "weights_hash": "a", "iteration": 8}
    card: Any = SimpleNamespace(run="r", manifest=manifest, final=final, ratings=[])
    assert network_sentence(card) == "Network: token_transformer, 9 parameters, size 9M."
    assert rating_lines(card) == ["- iteration 8 against random: +3 =0 -1"]
    final["simulations"] = 64
    assert rating_lines(card) == ["- iteration 8 against random, 64 simulations: +3 =0 -1"]


def test_the_card_counts_the_labelled_positions_that_were_read():
    spent = Spent(device_seconds=3600.0, flops=1e9, devices=("cpu X",))
    assert cost_lines(spent, 96, 24_576)[:2] == [
        "- 24,576 labelled positions read, 96 optimizer steps",
        "- 0 simulations, 1e+09 FLOPs of matrix products",
    ]
    assert cost_lines(spent._replace(frames=64.0), 96, 512)[1].startswith("- 64 positions played, 0 simulations, ")


def test_the_card_tells_the_runs_own_steps_from_what_all_before_it_cost():
    spent = Spent(frames=860_160.0, simulations=13_762_560.0, flops=5.51e14, devices=("cpu X",))
    assert cost_lines(spent, 1464, 0, "los_alamos_selfplay")[:2] == [
        "- 1464 optimizer steps since los_alamos_selfplay",
        "- 860,160 positions played, 13,762,560 simulations, 5.51e+14 FLOPs of matrix products in all",
    ]
    assert cost_lines(None, 96, 0) == ["- 96 optimizer steps; the run does not say what else it cost"]


@pytest.mark.parametrize("name", ["weights/manifest.ocdbt", "experiment.toml"])
def test_a_changed_file_of_it_is_one_sentence(name, published, capsys):
    with (published / name).open("ab") as file:
        file.write(b" ")
    assert main(["info", str(published)]) == 1
    assert capsys.readouterr().err == f"alphagateau: {published / name} is damaged: its checksum is wrong\n"


def test_its_card_may_be_edited(published, capsys):
    (published / "README.md").write_text("more")
    assert main(["info", str(published), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["published"]["run"] == "trained" and told["run"] is None and told["iteration"] == 2


def test_a_run_that_begins_from_it_counts_what_it_cost(published, trained, tmp_path):
    run, smoke = tmp_path / "tuned", config.load(config.find_file("smoke", "experiment"))
    run.mkdir()
    (run / "config.toml").write_text(config.dumps(dataclasses.replace(smoke, game="chess")))
    weights = checkpoint.open_checkpoint(published).manifest["weights_hash"]
    run_record.write_record(run, {"starts": [START], "init_from": str(published), "init_from_hash": weights})
    assert find_origin(run, run_record.read_record(run)) == (published, 2)
    assert read_spent(run, lambda experiment: {})[0].frames == read_spent(trained, lambda experiment: {})[2].frames


def test_what_cannot_be_published_is_one_sentence(published, trained, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(flops, "experiment_flops", lambda experiment: {})  # it takes JAX a second
    monkeypatch.chdir(tmp_path)

    def refused(*words: str, to: str = "checkpoints") -> str:
        code = main(["publish", *words, "--folder", str(tmp_path / to)])
        said = capsys.readouterr().err
        assert code in (1, 2) and said.count("\n") == 1
        return said

    assert main(["publish", str(trained), "small", "--folder", str(tmp_path / "checkpoints")]) == 0  # once more
    assert capsys.readouterr().out == f"{published}\n"
    assert "expected letters" in refused(str(trained), "../up")
    assert "is of no run" in refused(str(published), "again")
    assert "is no published checkpoint, or holds" in refused(str(trained), "trained", to=str(trained.parent))
    assert main(["publish", str(trained), "small", "--folder", "my models"]) == 0
    card = Path("my models", "small", "README.md").read_text()
    assert "alphagateau play 'my models/small'\n" in card and "train 'my models/small'/experiment.toml" in card
    (published / "levels.json").touch()  # of its user
    assert "is no published checkpoint, or holds" in refused(str(trained), "small")
    assert (published / "levels.json").exists()
    (tmp_path / "none.csv").write_text(RATINGS.replace("trained/2", "other/3"))
    assert "rates no player trained/2" in refused(str(trained), "b", "--ratings", str(tmp_path / "none.csv"))
    assert "is no ratings.csv" in refused(str(trained), "b", "--ratings", str(tmp_path / "absent.csv"))
    monkeypatch.setattr(publishing, "MAX_BYTES", 100)
    assert "expected at most 0.1 kB" in refused(str(trained), "b")


def test_a_newest_checkpoint_that_is_damaged_is_passed_over_aloud(trained, tmp_path, capsys):
    """It was without a word, so that an older one was published for it."""
    run = shutil.copytree(trained, tmp_path / "run")
    saved = save_tiny(run / "checkpoints", "gardner_chess", GateauConfig, "3")
    next(path for path in saved.path.rglob("d/*") if path.is_file()).write_bytes(b"0")
    assert main(["info", str(run), "--json"]) == 0
    out, error = capsys.readouterr()
    assert error.startswith("passed over: ") and "checkpoints/3" in error and error.count("\n") == 1
    assert f"{run}/checkpoints/2" in out


@pytest.mark.parametrize(
    ("within", "typed", "shown"),
    [
        ("..", "trained/checkpoints/2", "trained"),
        (".", "checkpoints/2", None),
        (".", ".", None),
        ("checkpoints", "2", None),
        ("checkpoints/2", ".", None),
        ("checkpoints/1", "../2", None),
    ],
)
def test_a_checkpoint_knows_its_run_wherever_its_path_is_typed(within, typed, shown, trained, monkeypatch):
    """It was of no run, or of one without a name, which publish wrote."""
    monkeypatch.chdir(trained / within)
    monkeypatch.setattr(flops, "experiment_flops", lambda experiment: {})  # it takes JAX a second
    ratings = trained.parent / "own.csv"
    ratings.write_text(RATINGS)
    assert description_of(Path(typed))["run"] == str(shown or trained.resolve())
    found, card = read_run(Arguments(Path(typed), "small", (ratings,)))
    assert (card.run, name_of(found)) == ("trained", "trained/2")


def test_no_run_is_begun_in_it(published):
    with pytest.raises(run_folder.RunError, match="is a checkpoint, in which no run can be"):
        run_folder.check_folder(published, config.load(published / "experiment.toml"))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout")
def test_git_takes_up_what_is_published_and_no_run(published, trained):
    """By .gitignore, of names as they would lie in the checkout."""

    def ignored(folder: Path) -> set[str]:
        files = [f"checkpoints/x/{path.relative_to(folder)}" for path in folder.rglob("*") if path.is_file()]
        words = ["git", "-C", str(ROOT), "check-ignore", "--no-index", *files]
        found = subprocess.run(words, capture_output=True, text=True).stdout.split()
        return {"all"} if len(found) == len(files) else set(found)

    assert ignored(published) == set()
    assert ignored(trained) == {"all"}


@pytest.mark.parametrize("folder", COME_WITH_A_CLONE, ids=lambda folder: folder.name)
def test_what_comes_with_a_clone_is_whole_small_listed_and_plays(folder, capsys):
    assert main(["info", str(folder)]) == 0, "its weights or experiment.toml are not those of its manifest"
    assert capsys.readouterr().out
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 8e6
    assert f"`{folder.name}`" in (ROOT / "checkpoints" / "README.md").read_text()
    player = load_player(read_spec(str(folder)), config.load(folder / "experiment.toml").game)
    assert player.name == folder.name
    assert player.key[0] in (folder / "README.md").read_text()
