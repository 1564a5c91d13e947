"""The runs of a study: what is planned, in which order it is trained, what goes on and what is refused."""

import json
import math
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pretended_runs import STEPS, PretendedProcess, write_iteration

from alphagateau import config
from alphagateau.commands import study as study_command
from alphagateau.commands.main import main
from alphagateau.commands.study import open_study
from alphagateau.config import ConfigError
from alphagateau.distributed.launch import detect
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Row, make_results
from alphagateau.runs import checkpoint
from alphagateau.runs.costs import Cost
from alphagateau.runs.files import to_json
from alphagateau.runs.run_folder import RunError, locked
from alphagateau.runs.run_record import read_record, write_record
from alphagateau.runs.spent import find_origin
from alphagateau.runs.stop import StopRequest
from alphagateau.studies import training
from alphagateau.studies.budget import make_budget_check
from alphagateau.studies.plan import changed_keys, make_plan
from alphagateau.studies.result_files import as_json
from alphagateau.studies.results import Rated, gather
from alphagateau.studies.status import is_busy
from alphagateau.studies.training import Study, describe_progress, statuses, train_piece, train_runs

STUDY = """
base = "smoke"
seeds = [3, 5]
[budget]
{budget}
[variants.base]
[variants.wide]
network.hidden_size = 16
"""
FRAMES = 64  # of an iteration of the smoke experiment


@pytest.fixture(autouse=True)
def pretended(monkeypatch):
    """No run is trained."""
    monkeypatch.setattr(training, "subprocess", SimpleNamespace(Popen=PretendedProcess))
    monkeypatch.setattr(training, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(PretendedProcess, "told", [])


def make_study(folder: Path, text: str = STUDY, budget: str = "iterations = 2") -> Study:
    path = folder / "compare.toml"
    path.write_text(text.format(budget=budget))
    plan = make_plan(config.load_study(path), "compare.toml")
    return open_study(plan, folder / "runs" / plan.study.name, "compare.toml")


def trained() -> list[str]:
    """The runs in the order in which processes worked on them."""
    return [Path(words[0]).stem for words in PretendedProcess.told]


def test_runs_are_ordinary_runs_of_the_changed_experiments(tmp_path):
    plan = make_study(tmp_path).plan
    assert [run.name for run in plan.runs] == ["base-3", "wide-3", "base-5", "wide-5"]
    smoke = config.load(config.find_file("smoke", "experiment"))
    wide = plan.runs[3].experiment
    assert (wide.seed, wide.num_iterations, wide.evaluation.num_games) == (5, 2, 0)
    assert vars(wide.network)["hidden_size"] == 16
    changed = [line.split(":")[0] for line in config.describe_difference(smoke, wide)]
    assert changed == ["seed", "num_iterations", "network.hidden_size", "evaluation.num_games"]
    assert changed_keys(plan) == {"network.hidden_size": {"base": 8, "wide": 16}}


@pytest.mark.parametrize(
    ("limits", "cost"),
    [
        ("iterations = 3", Cost(3, 3 * FRAMES, 3 * STEPS, 0.0, 6.0)),
        (f"frames = {2 * FRAMES + 1}", Cost(3, 3 * FRAMES, 3 * STEPS, 0.0, 6.0)),
        (f"steps = {2 * STEPS}", Cost(2, 2 * FRAMES, 2 * STEPS, 0.0, 4.0)),
        ("seconds = 2.5", Cost(2, 2 * FRAMES, 2 * STEPS, 0.0, 4.0)),
        ("seconds = 99", Cost(4, 4 * FRAMES, 4 * STEPS, 0.0, 8.0)),
        ("steps = 99\nseconds = 1", Cost(1, FRAMES, STEPS, 0.0, 2.0)),
    ],
)
def test_a_run_ends_with_the_first_iteration_that_reaches_the_budget(tmp_path, limits, cost):
    study = make_study(tmp_path, budget=limits)
    assert train_runs(study, StopRequest()) == {}
    for status in statuses(study).values():
        assert status.cost == cost and status.ended
    ran = len(trained())
    assert train_runs(study, StopRequest()) == {} and len(trained()) == ran  # what has ended is not touched again


def test_runs_take_turns_by_pieces(tmp_path):
    study = make_study(tmp_path, "piece = 1\n" + STUDY)
    train_runs(study, StopRequest())
    assert trained() == ["base-3", "wide-3", "base-5", "wide-5"] * 2
    PretendedProcess.told.clear()
    train_runs(make_study(tmp_path / "..", STUDY.replace("base =", 'name = "whole"\nbase =')), StopRequest())
    assert trained() == ["base-3", "wide-3", "base-5", "wide-5"]


def test_a_run_that_another_process_holds_is_passed_over_and_waited_for(tmp_path):
    study = make_study(tmp_path)
    said: list[str] = []
    stop = StopRequest(ask=lambda: "enough" if any("waiting" in line for line in said) else None)
    with locked(study.folder / "wide-3"):
        train_runs(study._replace(report=said.append), stop)
    assert trained() == ["base-3", "base-5", "wide-5"]
    assert said[-1] == "waiting for other processes, which hold or must end wide-3"
    train_runs(study, StopRequest())
    assert trained()[3:] == ["wide-3"]


def test_fine_tuning_begins_from_the_run_of_the_same_seed_once_it_has_ended(tmp_path):
    chain = (
        "piece = 1\n" + STUDY + '[variants.tuned]\nexperiment = "smoke"\ninit_from = "late"\nbudget.iterations = 1\n'
    )
    study = make_study(tmp_path, chain + "[variants.late]\ntraining.learning_rate = 0.5\n")
    train_runs(study, StopRequest())
    order = trained()
    for seed in (3, 5):
        assert order.index(f"tuned-{seed}") > max(i for i, name in enumerate(order) if name == f"late-{seed}")
        words = PretendedProcess.told[order.index(f"tuned-{seed}")]
        assert words[-2:] == ["--init-from", str(study.folder / f"late-{seed}")]
    assert changed_keys(study.plan)["init_from"] == {"tuned": "late"}
    assert statuses(study)["tuned-3"].cost.iterations == 1


def test_fine_tuning_begins_where_the_budget_of_its_source_ends_and_goes_on_in_a_study_that_moved(tmp_path):
    """It began from the newest checkpoint, which a larger budget had made; moved, its runs were of other weights."""
    tuned = STUDY + '[variants.tuned]\ninit_from = "base"\nbudget.iterations = 2\n'
    train_runs(make_study(tmp_path, budget="iterations = 4"), StopRequest())
    train_runs(make_study(tmp_path, tuned.replace("[budget]", "piece = 1\n[budget]"), "iterations = 3"), StopRequest())
    told = [words for words in PretendedProcess.told if Path(words[0]).stem == "tuned-3"]
    assert [words[5:] for words in told] == [
        ["--init-from", str(tmp_path / "runs" / "compare" / "base-3" / "checkpoints" / "3")],
        [],  # it goes on
    ]
    number = len(PretendedProcess.told)
    (tmp_path / "moved").mkdir()
    moved = (tmp_path / "runs").rename(tmp_path / "moved" / "runs")
    study = make_study(tmp_path / "moved", tuned, budget="iterations = 3")
    assert train_runs(study, StopRequest()) == {} and len(PretendedProcess.told) == number  # all have ended
    record = read_record(moved / "compare" / "tuned-3")
    origin = checkpoint.open_checkpoint(moved / "compare" / "base-3" / "checkpoints" / "3")
    record["init_from_hash"] = origin.manifest["weights_hash"]
    assert find_origin(moved / "compare" / "tuned-3", record) == (moved / "compare" / "base-3", 3)


def test_a_run_that_fails_twice_is_given_up_with_what_needs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(PretendedProcess, "fail", staticmethod(lambda name: name == "base-3"))
    chain = '[variants.b]\ninit_from = "base"\n[variants.c]\ninit_from = "b"\n'
    study = make_study(tmp_path, STUDY + chain)
    failures = train_runs(study, StopRequest())
    assert failures == {"base-3": "its process failed 2 times", "b-3": "it needs base-3", "c-3": "it needs b-3"}
    assert trained().count("base-3") == 2 and statuses(study)["c-5"].ended


def test_a_run_that_another_process_takes_just_then_has_not_failed(tmp_path, monkeypatch):
    """It was left out of this process's page, twice begun too late."""
    study, busy, began = make_study(tmp_path), iter([False, True] * 3), []

    def begin(study, run, known, stop):
        began.append(run.name)
        return 1 if len(began) <= 3 else train_piece(study, run, known, stop)

    monkeypatch.setattr(training, "train_piece", begin)
    monkeypatch.setattr(training, "is_busy", lambda _: next(busy, False))  # free, then taken while it began
    assert train_runs(study, StopRequest()) == {} and began[:4] == ["base-3"] * 4


def test_a_process_that_ends_well_but_comes_no_further_is_not_started_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(PretendedProcess, "train", lambda *words: None)
    study = make_study(tmp_path)
    assert set(train_runs(study, StopRequest())) == {run.name for run in study.plan.runs}
    assert len(trained()) == 2 * len(study.plan.runs)


def test_a_row_without_its_checkpoint_is_not_the_end(tmp_path):
    """A kill between the last line of metrics.jsonl and the last checkpoint."""
    study = make_study(tmp_path)
    train_runs(study, StopRequest())
    run = study.folder / "base-3"
    (run / "checkpoints" / "2" / "manifest.json").unlink()
    assert not statuses(study)["base-3"].ended and statuses(study)["base-3"].iteration == 1


def test_a_larger_budget_goes_on_and_a_smaller_one_looks_back(tmp_path):
    train_runs(make_study(tmp_path), StopRequest())
    larger = make_study(tmp_path, budget="iterations = 3")
    assert not statuses(larger)["base-3"].ended
    train_runs(larger, StopRequest())
    assert statuses(larger)["base-3"].cost.iterations == 3
    assert statuses(make_study(tmp_path, budget=f"steps = {STEPS}"))["base-3"].cost == Cost(1, FRAMES, STEPS, 0.0, 2.0)


def test_a_run_that_its_health_stopped_has_ended(tmp_path):
    study = make_study(tmp_path)
    train_runs(study, StopRequest())
    longer = make_study(tmp_path, budget="iterations = 5")
    record = read_record(study.folder / "wide-3")
    write_record(study.folder / "wide-3", record | {"unhealthy": {"why": "the value head is saturated"}})
    assert statuses(longer)["wide-3"].ended == "its health ended it: the value head is saturated"
    text = STUDY.replace("[budget]", "[changes]\nhealth.max_value_saturation = 1.0\n[budget]")
    trusting = make_study(tmp_path, text, "iterations = 5")
    ended = {name: status.ended for name, status in statuses(trusting).items()}
    assert set(ended.values()) == {""}  # a change of [health] goes on, as of a run


def test_what_cannot_be_locked_is_not_in_use(tmp_path):
    """A full disk was: the study waited for ever, or ended without a page."""
    (tmp_path / "wide-3").touch()
    with pytest.raises(RunError, match=f"cannot write to {tmp_path / 'wide-3'}: "):
        is_busy(tmp_path / "wide-3")
    with locked(tmp_path / "base-3"):
        assert is_busy(tmp_path / "base-3")
    assert not is_busy(tmp_path / "base-3")


def test_a_run_of_a_study_that_a_cluster_starts_several_times_is_of_one_process(tmp_path, monkeypatch):
    for name, value in {"SLURM_STEP_NODELIST": "n[1-2]", "SLURM_NTASKS": "2", "OMPI_COMM_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    environments = []

    class Noting(PretendedProcess):
        def __init__(self, command, env, **options):
            super().__init__(command)
            environments.append(env)

    monkeypatch.setattr(training, "subprocess", SimpleNamespace(Popen=Noting))
    train_runs(make_study(tmp_path), StopRequest())
    for env in environments:
        with monkeypatch.context() as patch:
            patch.setattr(os, "environ", env)
            assert detect() is None
    assert len(environments) == 4


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            "training.learning_rate = 0.5",
            "variants.wide was changed after its run began: .*learning_rate: 0.001 -> 0.5",
        ),
        ('init_from = "base"', "variants.wide: .*wide-3 began from no weights, not from .*base-3"),
    ],
)
def test_a_variant_that_was_edited_after_its_runs_began_is_refused(tmp_path, changed, said):
    train_runs(make_study(tmp_path), StopRequest())
    with pytest.raises(ConfigError, match=f"^compare.toml: {said}") as caught:
        make_study(tmp_path, STUDY + changed)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_a_run_is_no_studys(tmp_path):
    (tmp_path / "runs" / "compare").mkdir(parents=True)
    (tmp_path / "runs" / "compare" / "config.toml").touch()
    with pytest.raises(ConfigError, match="is a run, not a study's folder"):
        make_study(tmp_path)


def test_progress_says_what_is_left(tmp_path, capsys):
    study = make_study(tmp_path, budget="iterations = 4")
    experiment = study.plan.runs[0].experiment
    PretendedProcess(["train", str(_file(study, 0)), "--runs", str(study.folder), "--until", "iterations=1"])
    (busy := study.folder / "wide-5").mkdir()
    with locked(busy):
        rows, total = describe_progress(study)
    assert rows[0] == ("base-3", "1 of 4", "64", "3", "2", "to go on", "0:00:06")
    assert [row[5] for row in rows[1:]] == ["to begin", "to begin", "in progress"]
    assert total == "0:00:30"  # 15 iterations at 2 seconds
    write_iteration(study.folder / "base-3", experiment, 2)
    assert describe_progress(study)[1] == "0:00:28"


def _file(study: Study, number: int) -> Path:
    run = study.plan.runs[number]
    study.folder.mkdir(parents=True, exist_ok=True)
    path = study.folder / f"{run.name}.toml"
    path.write_text(config.dumps(run.experiment))
    return path


def test_dry_run_does_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "smoke_widths", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "narrow-1" in shown and "network.hidden_size: narrow 8; wide 16" in shown and "unknown" in shown
    assert not list(tmp_path.iterdir()) and PretendedProcess.told == []


def test_elo_is_compared_by_seed(tmp_path):
    """Wide is above base by the mean of both seeds' differences; curves are of the iterations rated of all seeds."""
    study = make_study(tmp_path)
    train_runs(study, StopRequest())
    scores = {"base-3": 10, "base-5": 14, "wide-3": 17, "wide-5": 16}  # points of 20 games against the random mover
    rows = [Row(f"{name}/2", "random", wins, 0, 20 - wins) for name, wins in scores.items()]
    rows += [Row("base-3/2", "base-5/2", 9, 2, 9), Row("wide-3/2", "base-3/2", 12, 2, 6)]
    rows += [Row("start", name, 5, 2, 13) for name in ("base-3/2", "wide-3/2")]
    ratings = rate(make_results(rows), anchor="random")
    names = {(name, 2): f"{name}/2" for name in scores} | {(name, 0): "start" for name in scores}
    rated = Rated(ratings, make_results(rows), names)
    result = gather(study.plan, study.folder, statuses(study), {}, {"gardner_chess": rated})
    found = json.loads(to_json(as_json(result)))
    elo = found["measures"]["Elo on gardner_chess"]["variants"]
    first, second = (elo["wide"]["values"][seed] - elo["base"]["values"][seed] for seed in "35")
    assert elo["wide"]["difference"]["mean"] == pytest.approx((first + second) / 2) and first > 0
    assert elo["wide"]["difference"]["half_width"] > elo["wide"]["difference"]["standard_error"] > 0
    assert [point["iterations"] for point in found["curves"]["gardner_chess"]["wide"]] == [0, 2]


def test_a_run_of_a_pool_that_never_met_the_others_is_not_compared(tmp_path):
    study = make_study(tmp_path)
    train_runs(study, StopRequest())
    rows = [Row(f"{name}/2", "random", 10, 0, 10) for name in ("base-3", "base-5", "wide-3")]
    results = make_results([*rows, Row("wide-5/2", "other", 10, 0, 10)])
    ratings = rate(results)
    names = {(name, 2): f"{name}/2" for name in ("base-3", "base-5", "wide-3", "wide-5")}
    result = gather(study.plan, study.folder, statuses(study), {}, {"gardner_chess": Rated(ratings, results, names)})
    base, wide = result.measures[0].rows
    assert (set(base.values), set(wide.values), set(wide.differences)) == ({3, 5}, {3}, {3})
    nobody = Rated(ratings, results, {})
    unrated = gather(study.plan, study.folder, statuses(study), {}, {"gardner_chess": nobody})
    assert unrated.measures[0].rows == []


def test_a_runs_rating_may_be_the_mean_of_its_last_checkpoints(tmp_path):
    """By hand from the ratings and their covariance; the untrained weights are none of them."""
    study = make_study(tmp_path, "last = 3\n" + STUDY.replace("seeds = [3, 5]", "seeds = [3]"))
    train_runs(study, StopRequest())
    players = ["base-3/0", "base-3/1", "base-3/2", "wide-3/1", "wide-3/2"]
    pairs = [(a, b) for k, a in enumerate(players) for b in players[:k]]
    results = make_results([Row(a, b, 7 + number, 2, 8) for number, (a, b) in enumerate(pairs)])
    ratings = rate(results)
    names = {(name.split("/")[0], int(name[-1])): name for name in players}
    result = gather(study.plan, study.folder, statuses(study), {}, {"gardner_chess": Rated(ratings, results, names)})
    base, wide = result.measures[0].rows
    r, c = dict(zip(ratings.players, ratings.rating, strict=True)), ratings.covariance
    assert base.values[3] == pytest.approx((r["base-3/1"] + r["base-3/2"]) / 2)
    assert wide.values[3] == pytest.approx((r["wide-3/1"] + r["wide-3/2"]) / 2)
    a = np.zeros(5)
    for name, weight in (("base-3/1", -0.5), ("base-3/2", -0.5), ("wide-3/1", 0.5), ("wide-3/2", 0.5)):
        a[ratings.players.index(name)] = weight
    assert wide.difference is not None and wide.difference.measured == pytest.approx(math.sqrt(a @ c @ a))
    assert result.last == 3 and as_json(result)["last"] == 3


def test_direct_games_of_equal_seeds_are_scored_beside_elo(tmp_path):
    """14 of 20 points and 9 of 20 in both colors; games of other seeds and others do not count."""
    study = make_study(tmp_path, "direct_games = 20\n" + STUDY + "[ladder]\n")
    train_runs(study, StopRequest())
    rows = [Row("wide-3/2", "base-3/2", 8, 1, 1, 1), Row("base-3/2", "wide-3/2", 4, 3, 3, 1)]
    rows += [Row("wide-5/2", "base-5/2", 8, 2, 10), Row("wide-3/2", "base-5/2", 20, 0, 0)]
    names = {(name, 2): f"{name}/2" for name in ("base-3", "base-5", "wide-3", "wide-5")}
    results = make_results(rows)
    rated = {"gardner_chess": Rated(rate(results), results, names)}
    result = gather(study.plan, study.folder, statuses(study), {}, rated)
    elo, score = result.measures
    assert score.name == "score against base on gardner_chess" and elo.rows[1].difference is not None
    (wide,) = score.rows
    points = 8.5 + 3 + 1.5
    assert wide.values == {3: pytest.approx(points / 20), 5: pytest.approx(9 / 20)} and wide.difference is None
    assert wide.mean.mean == pytest.approx((points + 9) / 40)
    first = (11 + 0.5 + 4 / 4) / 21 - ((points + 0.5) / 21) ** 2  # half a game more won and one lost
    second = (8 + 0.5 + 2 / 4) / 21 - ((9 + 0.5) / 21) ** 2
    assert wide.mean.measured == pytest.approx(math.sqrt((first + second) / 21) / 2)


def test_a_factorial_study_ends_with_the_effects_of_its_factors(tmp_path, monkeypatch):
    """The whole command on metrics, but for what is pretended: all runs have the same loss."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(study_command, "count_flops", lambda experiments: [{"gardner_chess": 1.0}] * len(experiments))
    text = 'metrics = ["train/loss"]\ndesign = "factorial"\n' + STUDY.format(budget="iterations = 1")
    factors = "[factors]\nnetwork.hidden_size = [8, 16]\nsearch.num_simulations = [2, 4]\n"
    Path("compare.toml").write_text(text.partition("[variants.base]")[0] + factors)
    assert main(["study", "compare.toml"]) == 0
    assert trained()[:5] == ["row01-3", "row02-3", "row03-3", "row04-3", "row01-5"]
    found = json.loads(Path("eval/compare/study.json").read_text())
    effects = found["measures"]["train/loss"]["effects"]
    assert list(effects) == ["network.hidden_size: 8 to 16", "search.num_simulations: 2 to 4"]
    assert effects["network.hidden_size: 8 to 16"]["mean"] == pytest.approx(0)
    assert found["reference"] == "" and "| network.hidden_size: 8 to 16 | " in Path("eval/compare/study.md").read_text()
    page = Path("eval/compare/index.html").read_text()
    assert "resolution IV" in page and main(["report", "eval/compare"]) == 0
    assert Path("eval/compare/index.html").read_text() == page


def test_a_study_without_a_ladder_compares_costs_and_metrics(tmp_path, monkeypatch, capsys):
    """The whole command, but for what is pretended."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        study_command, "count_flops", lambda experiments: [{"gardner_chess": 1.0}, {"gardner_chess": 4.0}]
    )
    Path("compare.toml").write_text('metrics = ["train/loss"]\n' + STUDY.format(budget="iterations = 2"))
    assert main(["study", "compare.toml"]) == 0
    found = json.loads(Path("eval/compare/study.json").read_text())
    assert (
        found["runs"]["wide-5"]["steps"] == 2 * STEPS
        and found["runs"]["wide-5"]["flops"] == 2 * 64 * 4 * 5 + 3 * 4 * 32 * 2 * STEPS
    )
    assert found["measures"]["train/loss"]["variants"]["wide"]["values"] == {"3": 0.5, "5": 0.5}
    assert found["measures"]["train/loss"]["variants"]["wide"]["difference"]["mean"] == 0
    assert found["changed"] == {"network.hidden_size": {"base": 8, "wide": 16}}
    assert "| `network.hidden_size` | 8 | 16 |" in Path("eval/compare/study.md").read_text()
    assert "may be no difference" in Path("eval/compare/index.html").read_text()
    assert capsys.readouterr().out.endswith("eval/compare/index.html\n")


def test_frames_are_no_budget_of_a_run_that_plays_none(tmp_path):
    labelled = config.load(Path(__file__).parents[2] / "experiments" / "labelled_gardner.toml")
    with pytest.raises(ConfigError, match=r"needs \[selfplay\]"):
        make_budget_check(tmp_path, config.parse_budget("frames=1000"), labelled)
