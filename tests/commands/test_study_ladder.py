"""The ladder of a study: who plays on it, direct games, and what is said of one that cannot be played."""

import gzip
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pretended_runs import write_checkpoint
from tiny_checkpoints import save_tiny

from alphagateau import config
from alphagateau.cli import study_ladders as ladders
from alphagateau.cli.arguments import UsageError
from alphagateau.cli.study_ladders import keep
from alphagateau.config import LadderConfig, StudyConfig
from alphagateau.matches.specs import name_of, read_spec
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.runs.checkpoint import open_checkpoint
from alphagateau.studies.plan import make_plan
from alphagateau.studies.status import Status
from alphagateau.studies.training import Study

ENGINE = f"{sys.executable} {Path(__file__).parents[1] / 'fake_engine.py'}"


def test_an_anchor_that_does_not_play_is_one_sentence(monkeypatch, tmp_path):
    """It is known once the engines have said what they are called, which is after the training; no run is lost."""
    ladder = LadderConfig(players=("random",), boards=("chess",), anchor="rondom")
    plan = SimpleNamespace(
        study=SimpleNamespace(name="s", ladder=ladder),
        reference=SimpleNamespace(experiment=SimpleNamespace(platform="auto")),
    )
    monkeypatch.setattr(ladders, "list_players", lambda *_: ([read_spec(f"uci:{ENGINE}?nodes=50")], {}))
    with pytest.raises(UsageError, match=r"^s, \[ladder\]: .*rondom"):
        ladders.rate_runs(SimpleNamespace(plan=plan), {}, tmp_path, SimpleNamespace(reason=None))


def test_runs_of_one_seed_play_direct_games_beside_the_ladders(tmp_path, capsys):
    """Two untrained networks: 2 games a pair with the random mover and each other, then 4 of theirs in all."""
    for seed, run in enumerate(("base-0", "wide-0")):
        for name in "12":
            save_tiny(tmp_path / run / "checkpoints", "gardner_chess", GateauConfig, name, seed=2 * seed + int(name))
        (tmp_path / run / "config.toml").touch()  # by which it is a run
    ladder = {"matching": "all", "games_per_pair": 2, "rows": 8}
    study = StudyConfig(
        base="smoke",
        budget={"iterations": 2},
        variants={"base": {}, "wide": {"search": {"num_simulations": 2}}},
        player="search=policy",
        direct_games=4,
        ladder=ladder,
    )
    plan = make_plan(study, "study.toml")
    known = {run.name: Status(2, [], "all done") for run in plan.runs}
    study = Study(plan, tmp_path, {}, print)
    for _ in range(2):  # the second time there is nothing left to play
        rated = ladders.rate_runs(study, known, tmp_path / "ladder", SimpleNamespace(reason=None))["gardner_chess"]
        games = {frozenset(row[:2]): 0 for row in rated.results.rows}
        for row in rated.results.rows:
            games[frozenset(row[:2])] += sum(row[2:5])
        assert games == {
            frozenset({"base-0/2", "wide-0/2"}): 4,
            frozenset({"base-0/2", "random"}): 2,
            frozenset({"wide-0/2", "random"}): 2,
        }
        said = capsys.readouterr().err
        assert said.count("direct games, seed 0: wide and base\n") == 1
        assert "not on this ladder" not in said
    assert rated.names == {("base-0", 2): "base-0/2", ("wide-0", 2): "wide-0/2"}


def test_direct_games_on_a_pool_are_from_its_openings_and_of_the_runs_alone(tmp_path, monkeypatch):
    for seed, run in enumerate(("base-0", "wide-0")):
        save_tiny(tmp_path / run / "checkpoints", "gardner_chess", GateauConfig, "1", seed=seed)
        (tmp_path / run / "config.toml").touch()
    keys = {"variants": {"base": {}, "wide": {"search": {"num_simulations": 2}}}, "player": "search=policy"}
    keys |= {"direct_games": 4, "ladder": {"pool": "gardner_chess"}}
    plan, played = make_plan(StudyConfig(base="smoke", budget={"iterations": 1}, **keys), "study.toml"), []
    monkeypatch.setattr(ladders, "play_ladder", lambda *given: played.append(given) or [])
    known = {run.name: Status(1, [], "all done") for run in plan.runs}
    ladders._play_direct_games(Study(plan, tmp_path, {}, print), known, plan.study.ladder, tmp_path, lambda: False)
    ((ladder, specs, *_),) = played
    assert (ladder.players, ladder.pool, ladder.games_per_pair) == (("base-0", "wide-0"), "", 4)
    assert Path(ladder.openings).parts[-2:] == ("gardner_chess", "openings.txt")
    assert [Path(spec.path).parts[-3] for spec in specs] == ["wide-0", "base-0"]
    own = LadderConfig(players=("a",), anchor="random", anchor_rating=1000.0, openings="o", make_pool=True)
    ladders._play_direct_games(Study(plan, tmp_path, {}, print), known, own, tmp_path, lambda: False)
    assert (played[1][0].anchor_rating, played[1][0].make_pool) == (0.0, False)  # it was refused for its anchor


def test_what_is_kept_are_the_weights_that_a_rating_is_of_and_the_file_of_their_ladder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "123":
        save_tiny(tmp_path / "a-0" / "checkpoints", "gardner_chess", GateauConfig, name, seed=int(name))
    (tmp_path / "out" / "ladder").mkdir(parents=True)
    (tmp_path / "out" / "ladder" / "games.pgn").write_text("1-0")
    ladder = {"anchor": "a-0/3", "max_games": 8}
    keys = {"variants": {"a": {}}, "last": 2, "player": "search=policy", "ladder": ladder}
    plan = make_plan(StudyConfig(base="smoke", budget={"iterations": 3}, **keys), "study.toml")
    keep(Study(plan, Path(), {}, print), {"a-0": Status(3, [], "done")}, Path("out"))
    kept = config.load_ladder("out/ladder.toml")
    assert kept.players == ("out/weights/a-0.2?search=policy", "out/weights/a-0?search=policy", "random")
    assert (kept.anchor, kept.boards, kept.max_games) == ("a-0", ("gardner_chess",), 8)
    for player in kept.players[:2]:
        found = read_spec(player).found.manifest
        of_run = open_checkpoint(Path("a-0/checkpoints", str(found["iteration"]))).manifest
        assert found["weights_hash"] == of_run["weights_hash"]
    assert gzip.decompress(Path("out/ladder/games.pgn.gz").read_bytes()) == b"1-0"
    keys["ladder"] = {"anchor": "a-0/1", "every": 1}  # whose weights were not kept
    plan = make_plan(StudyConfig(base="smoke", budget={"iterations": 3}, **keys), "study.toml")
    keep(Study(plan, Path(), {}, print), {"a-0": Status(3, [], "done")}, Path("out"))
    kept = config.load_ladder("out/ladder.toml")
    assert kept.anchor == "a-0.1" and kept.players[0] == "out/weights/a-0.1?search=policy"


@pytest.mark.parametrize(
    ("last", "every", "iterations"),
    [(1, 9, [4]), (1, 2, [0, 2, 4]), (3, 9, [2, 3, 4]), (3, 3, [0, 2, 3, 4]), (9, 9, [1, 2, 3, 4])],
)
def test_a_runs_last_checkpoints_are_rated(last, every, iterations, tmp_path):
    for iteration in range(6):
        write_checkpoint(tmp_path / "a-0", config.load(config.find_file("smoke", "experiment")), iteration)
    plan = make_plan(StudyConfig(base="smoke", budget={"iterations": 4}, variants={"a": {}}, last=last), "study.toml")
    specs = ladders.specs_of(Study(plan, tmp_path, {}, print), plan.runs[0], {"a-0": Status(4, [], "done")}, every)
    assert [spec.found.manifest["iteration"] for spec in specs] == iterations


def test_a_run_that_is_a_link_is_rated_by_the_name_of_its_folder(tmp_path):
    """It had no Elo, without a word: the ladder's players are called by their folders."""
    save_tiny(tmp_path / "run17" / "checkpoints", "gardner_chess", GateauConfig, "1", seed=1)
    (tmp_path / "run17" / "config.toml").touch()
    (tmp_path / "a-0").symlink_to(tmp_path / "run17")
    plan = make_plan(StudyConfig(base="smoke", budget={"iterations": 1}, variants={"a": {}}), "study.toml")
    study, ladder = Study(plan, tmp_path, {}, print), LadderConfig(players=("random",))
    specs, names = ladders.list_players(study, {"a-0": Status(1, [], "done")}, ladder)
    assert [name_of(spec.found) for spec in specs] == ["run17/1"] and names == {("a-0", 1): "run17/1"}
