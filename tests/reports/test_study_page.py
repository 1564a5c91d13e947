"""The page and the Markdown of a study: what they say of known numbers, and that names stay text."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from markup import HOSTILE, SHOWN, Outline, browser, dom_of, said_by

from alphagateau import config
from alphagateau.commands.main import main
from alphagateau.config import StudyConfig
from alphagateau.ratings.over_seeds import compare_over_seeds
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Row, make_results
from alphagateau.reports.study_page import (
    bounds,
    cost_table,
    difference_chart,
    effect_table,
    markdown,
    measure_table,
    says,
    sentences,
    study_page,
    write_study,
)
from alphagateau.runs.costs import Cost
from alphagateau.runs.files import to_json
from alphagateau.runs.run_folder import RunError
from alphagateau.studies.plan import changed_keys, make_plan
from alphagateau.studies.result_files import as_json, read_result
from alphagateau.studies.results import Curve, CurvePoint, Measure, Measured, RunResult, StudyResult

EVAL = Path(__file__).parents[2] / "eval"
SEEDS = (3, 5, 7)


def sample_result(name: str = "train/loss", seeds: tuple[int, ...] = SEEDS) -> StudyResult:
    """Two variants; the wide one is better by 40, 50, 60 Elo, of which the games explain an error of 10 each."""
    variants = {"base": {}, "wide": {"network": {"hidden_size": 16}, "training": {"loss": name}}}
    study = StudyConfig(
        name="sample", base="smoke", seeds=seeds, metrics=(name,), budget={"frames": 64}, variants=variants
    )
    plan = make_plan(study, "sample.toml")
    runs = [
        RunResult(
            name=r.name,
            variant=r.variant.name,
            seed=r.seed,
            ended="64 frames reached",
            failure="",
            cost=Cost(1, 64, 3, 2e9, 10),
            parameters=7,
            weights_hash="ab",
            devices=name,
            commits=["c0ffee"],
            metrics={},
        )
        for r in plan.runs
    ]
    elo = {seed: 1000.0 + seed for seed in seeds}
    gaps = {seed: 40.0 + 10 * place for place, seed in enumerate(seeds)}
    higher = {seed: elo[seed] + gaps[seed] for seed in seeds}
    values = {("base", seed): x for seed, x in elo.items()} | {("wide", seed): x for seed, x in higher.items()}
    found = compare_over_seeds(values, 50 * np.eye(len(values)), "base")
    (base, _), (mean, gap) = found["base"], found["wide"]
    rows = [Measured("base", elo, base, {}, None), Measured("wide", higher, mean, gaps, gap)]
    points = [CurvePoint(Cost(i, 64 * i, 3 * i, 1e9, 5.0 * i), base, 1000 - i, 1000 + i) for i in (0, 1)]
    curves = [Curve("gardner_chess", v.name, points) for v in plan.variants]
    measures = [Measure("Elo on gardner_chess", ".0f", rows), Measure(name, ".4g", rows[:1])]
    experiments = {v.name: config.to_dict(v.experiment) for v in plan.variants}
    about = {"name": "sample", "base": "smoke", "reference": "base", "seeds": seeds, "experiments": experiments}
    found = {"runs": runs, "measures": measures, "curves": curves, "num_games": {"gardner_chess": 240}}
    return StudyResult(**about, budgets={"base": {"frames": 64}}, changed=changed_keys(plan), **found)


def cells(row) -> list[str]:
    return [cell.text for cell in row]


def test_the_table_of_a_measure_says_the_difference_and_what_it_rests_on():
    """50 with standard error sqrt(100 / 3): half of the interval 4.302653 * 5.7735 = 24.8; of the games 1.96 * 5.77."""
    base, wide = measure_table(sample_result().measures[0], "base").rows
    assert cells(base)[3:] == ["–", "–", "–", "reference", "3", "–", "1003 1005 1007", "–"]
    assert cells(wide)[3:9] == ["+50", "25", "25", "higher", "3", "11"] and cells(wide)[10] == "+40 +50 +60"


def test_a_variant_without_seeds_of_the_reference_is_not_called_the_reference():
    measure = sample_result().measures[0]
    alone = measure._replace(rows=[measure.rows[1]._replace(difference=None, differences={})])
    assert cells(measure_table(alone, "base").rows[0])[6] == "–"


def test_the_table_of_effects_and_what_is_said_of_them():
    """The wide variant's difference as an effect: 50 with an interval of 25, of which games make 11."""
    result = sample_result()
    gap = result.measures[0].rows[1].difference
    assert gap is not None and effect_table(result.measures[0]) is None
    measure = result.measures[0]._replace(effects={"lr: 1 to 2": gap}, rows=result.measures[0].rows[:1])
    table = effect_table(measure)
    assert table is not None and cells(table.rows[0]) == ["lr: 1 to 2", "+50", "25", "25", "higher", "11"]
    result = result._replace(measures=[measure], reference="", last=3)
    lines = markdown(result).splitlines()
    assert "| lr: 1 to 2 | +50 ± 25 |" in lines and "| base | 64 | 3 | 2e+09 | 10 | 1005 ± 14 |" in lines
    said = sentences(result)
    assert "resolution IV" in said[0] and said[1] == "a run's rating is the mean of its last 3 checkpoints"


def test_a_difference_is_read_by_the_interval_that_holds_for_all_at_once():
    _, wide = sample_result().measures[0].rows
    assert wide.difference is not None and says(wide.difference) == "higher"
    assert says(wide.difference._replace(at_once=50.5)) == "may be no difference"


def test_the_difference_that_would_have_been_seen_is_said():
    """24.84 / 4.302653 standard errors, times 5.65 of them, where the paired t-test of 3 has a power of 80 %."""
    result = sample_result()
    said = "± 25 holds for all differences at once; 33 would have been seen four times in five."
    assert said in markdown(result).splitlines() and said in study_page(result)
    assert bounds(result.measures[1]) == "" == bounds(sample_result(seeds=(3,)).measures[0])


def test_a_study_of_an_earlier_version_is_read_and_said_to_be_one(tmp_path):
    """It has no bounds that hold at once: a difference is read by its own interval."""
    table = json.loads(to_json(as_json(sample_result())))
    for row in table["measures"]["Elo on gardner_chess"]["variants"].values():
        for estimate in filter(None, (row["mean"], row["difference"])):
            del estimate["at_once"], estimate["detectable"]
    (tmp_path / "study.json").write_text(json.dumps(table))
    result = read_result(tmp_path / "study.json")
    assert "an earlier version" in sentences(result)[0] and "an earlier version" not in sentences(sample_result())[0]
    assert cells(measure_table(result.measures[0], "base").rows[1])[3:7] == ["+50", "25", "–", "higher"]


def test_one_seed_is_said_to_say_little():
    result = sample_result(seeds=(3,))
    assert cells(measure_table(result.measures[0], "base").rows[1])[6] == "one seed: the spread over seeds is not known"
    assert "there is one seed: three or more would say much more" in sentences(result)
    assert "there are 2 seeds" in " ".join(sentences(sample_result(seeds=(3, 5))))


def test_markdown_by_hand():
    lines = markdown(sample_result()).splitlines()
    assert lines[0] == "`alphagateau study` sample: 3 seeds, ± half of a 95 % interval"
    assert "| `network.hidden_size` | 8 | 16 |" in lines
    assert "| variant | frames | steps | FLOPs | seconds | Elo on gardner_chess | minus base |" in lines
    assert "| wide | 64 | 3 | 2e+09 | 10 | 1055 ± 14 | +50 ± 25 |" in lines


def test_the_chart_of_differences_has_their_intervals():
    chart = difference_chart(sample_result().measures[0], "base")
    assert chart is not None
    ((point,),) = [series.points for series in chart.series]
    assert point.meaning == "wide: 50 ± 24.84"
    assert difference_chart(sample_result().measures[1], "base") is None


def test_runs_that_failed_are_named():
    result = sample_result()
    failed = result.runs[0]._replace(ended="", failure="its process failed", cost=Cost(0, 1, 0, 1e9, 1))
    ill = result.runs[1]._replace(ended="its health ended it: the policy has collapsed")
    said = sentences(result._replace(runs=[failed, ill, *result.runs[2:]]))
    assert said[-2:] == [
        "base-3 is left out: its process failed",
        "wide-3: its health ended it: the policy has collapsed",
    ]
    base = cost_table(result._replace(runs=[failed, *result.runs[1:]])).rows[0]
    assert cells(base)[4] == "64"  # a mean of those that ended, as beside their Elo


def test_runs_of_different_code_are_pointed_out():
    result = sample_result()
    assert not any("commits" in sentence for sentence in sentences(result))
    runs = [result.runs[0]._replace(commits=["c0ffee", "decade"]), *result.runs[1:]]
    assert any("code of 2 commits, c0ffee, decade" in sentence for sentence in sentences(result._replace(runs=runs)))


def test_json_has_what_depends_on_the_machine_apart():
    found = json.loads(to_json(as_json(sample_result())))
    machine = found.pop("machine")
    assert machine["runs"]["wide-5"] == {"seconds": 10, "devices": "train/loss", "commits": ["c0ffee"]}
    assert machine["curves"]["gardner_chess"]["wide"] == [0.0, 5.0]
    assert "seconds" not in json.dumps(found, allow_nan=False)
    assert found["measures"]["Elo on gardner_chess"]["variants"]["wide"]["difference"]["mean"] == 50


def test_what_limits_the_ratings_of_a_ladder_is_on_the_page_in_markdown_and_in_json(tmp_path):
    """Three engines that lost no game stood on the page of a study as rated, though its ladder had said it."""
    results = make_results([Row("a", "b", 3, 1, 2), Row("engine", "a", 20, 0, 0), Row("engine", "b", 20, 0, 0)])
    notes = rate(results, anchor="a").notes
    result = sample_result()._replace(rating_notes={"gardner_chess": notes})
    write_study(tmp_path, result)
    texts = [(tmp_path / name).read_text() for name in ("index.html", "study.md")]
    for said in ("ratings on gardner_chess: engine won every game: the results bound", "1 virtual draw of each player"):
        assert all(said in text for text in texts)
    read = read_result(tmp_path / "study.json")
    assert tuple(read.rating_notes["gardner_chess"]) == notes and markdown(read) == texts[1]


@pytest.mark.parametrize("seeds", [SEEDS, (3,)])
def test_a_page_is_made_again_from_its_json_alone(tmp_path, capsys, seeds):
    write_study(tmp_path, sample_result(seeds=seeds))
    drawn = {name: (tmp_path / name).read_text() for name in ("index.html", "curves.svg", "differences.svg")}
    for name in drawn:
        (tmp_path / name).unlink()
    assert main(["report", str(tmp_path)]) == 0
    assert {name: (tmp_path / name).read_text() for name in drawn} == drawn and "Elo on" in drawn["curves.svg"]
    assert capsys.readouterr().out == f"{tmp_path / 'index.html'}\n"


def test_the_page_of_an_earlier_study_has_the_notes_of_its_ratings(tmp_path):
    """Its ladder's engine stalemates the random mover."""
    page = tmp_path / "index.html"
    assert main(["report", str(EVAL / "claims_window"), "--out", str(page)]) == 0
    said = " ".join(Outline(page.read_text()).texts)
    assert "random and Fairy-Stockfish 11.1 LB 64 nodes=1 (10 of 20 drawn, 0 won and 10 lost)" in said
    assert "written by an earlier version" in said


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"name": 3}', "null"])
def test_a_damaged_study_json_is_named(tmp_path, text):
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(RunError, match=r"study\.json is damaged") as caught:
        read_result(tmp_path / "study.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("key", "value"), [("measures", {"Elo": {"form": 3}}), ("curves", [1])])
def test_a_study_json_of_other_kinds_is_named_as_its_page_is_drawn(tmp_path, capsys, key, value):
    write_study(tmp_path, sample_result())
    table = json.loads((tmp_path / "study.json").read_text())
    (tmp_path / "study.json").write_text(json.dumps(table | {key: value}))
    assert main(["report", str(tmp_path)]) == 1
    assert "study.json is damaged" in capsys.readouterr().err


def test_study_page_of_hostile_names():
    tame, hostile = Outline(study_page(sample_result("tame"))), Outline(study_page(sample_result(HOSTILE)))
    assert [t for t in hostile.tags if t != "wbr"] == [t for t in tame.tags if t != "wbr"]
    assert SHOWN in "".join(hostile.texts)
    assert not re.search(r"https?:|@import|url\(|\ssrc=|://", study_page(sample_result()))


def test_study_page_imports_neither_jax_nor_scipy():
    code = "import sys; from alphagateau.reports import study_page; print(sorted({'jax', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@browser
def test_study_page_in_a_browser(tmp_path):
    write_study(tmp_path / "out", sample_result())
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    driver = """document.title = JSON.stringify({
        sections: [...document.querySelectorAll("section h2")].map((h) => h.textContent),
        bands: document.querySelectorAll(".band").length,
        charts: document.querySelectorAll("figure.chart").length});"""
    said = said_by(dom_of(page, tmp_path, driver=driver))
    sections = ["What differs", "What it cost", "What came of it", "How sure one can be", "Curves", "Runs"]
    assert said == {"sections": sections, "bands": 8, "charts": 5}


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_cost_that_is_not_known_is_no_number(broken):
    result = sample_result()
    runs = [run._replace(cost=run.cost._replace(flops=broken)) for run in result.runs]
    assert "| – |" in markdown(result._replace(runs=runs))
