"""Forecasts of studies: what is found in simulated studies is what was said before, within 20 %."""

import itertools
import json
import math

import numpy as np
import pytest

from alphagateau.commands.main import main
from alphagateau.config import LadderConfig, PilotConfig, StudyConfig
from alphagateau.matches.ladder.simulation import SPREAD, forecast_ladder, simulate_ladder
from alphagateau.ratings.over_seeds import compare_over_seeds, main_effects
from alphagateau.runs.run_folder import RunError
from alphagateau.studies.forecast import forecast, read_pilot
from alphagateau.studies.plan import Plan, make_plan

VARIANTS = {"a": {}, "b": {"network": {"hidden_size": 16}}, "c": {"network": {"num_blocks": 2}}}
FACTORS = {"network": {"hidden_size": [8, 16], "num_blocks": [1, 2]}, "training": {"learning_rate": [1e-3, 3e-3]}}
ALL = {"players": ("p", "q"), "matching": "all", "games_per_pair": 20}
INFORMATIVE = {"players": ("p", "q"), "max_games": 640, "games_per_pair": 40}


def plan_of(**keys) -> Plan:
    study = {"base": "smoke", "seeds": (0, 1, 2), "budget": {"seconds": 90.0}, **keys}
    return make_plan(StudyConfig(**(study if "factors" in keys else {"variants": VARIANTS, **study})), "study.toml")


def share_found(plan: Plan, gap: float, seed_sd: float, num_studies: int) -> float:
    """Share of simulated studies that find that b, or the second value of the first factor, is `gap` Elo stronger."""
    ladder, rng, num_found = plan.study.ladder, np.random.default_rng(0), 0
    assert ladder is not None
    places = [(run.variant.name, run.seed) for run in plan.runs]
    for _ in range(num_studies):
        is_above = [plan.levels[v][0] > 0 if plan.levels else v == "b" for v, _ in places]
        strengths = gap * np.array(is_above) + rng.normal(0, seed_sd, len(places))
        others = dict(zip(ladder.players, rng.normal(0, SPREAD, len(ladder.players)), strict=True))
        names = {f"{v}-{seed}": x for (v, seed), x in zip(places, strengths.tolist(), strict=True)}
        rated = simulate_ladder(ladder, names | others, rng)
        values = dict(zip(places, rated.rating[: len(places)].tolist(), strict=True))
        covariance = rated.covariance[: len(places), : len(places)]
        if plan.levels:
            found = main_effects(values, covariance, plan.levels)[0]
        else:
            found = compare_over_seeds(values, covariance, "a")["b"][1]
        num_found += found is not None and abs(found.mean) > found.at_once
    return num_found / num_studies


@pytest.mark.parametrize(
    ("keys", "seed_sd"),
    [
        ({"ladder": ALL}, 42.0),
        ({"ladder": ALL}, 5.0),
        ({"ladder": INFORMATIVE}, 42.0),
        ({"ladder": INFORMATIVE, "factors": FACTORS, "design": "factorial", "seeds": (0,)}, 42.0),
    ],
)
def test_the_power_that_is_said_is_found_in_simulated_studies(keys, seed_sd):
    """At the difference of a power of 80 %: 64 to 96 % is within a fifth; the error of 100 studies is 4 %."""
    plan = plan_of(**keys)
    assert plan.study.ladder
    of_ladder = forecast_ladder(plan.study.ladder, len(plan.runs), 1, 1)
    pilot = read_pilot(PilotConfig(seed_sd=seed_sd), of_ladder.games_a_run, of_ladder.game_sd)
    gap = forecast(plan, pilot, of_ladder.num_games)[1][0.8]
    assert 0.64 <= share_found(plan, gap, seed_sd, 100) <= 0.96


@pytest.mark.parametrize("keys", [ALL, INFORMATIVE])
@pytest.mark.parametrize("last", [1, 3])
def test_the_error_by_games_is_that_of_simulated_ladders(keys, last):
    """Ratings less strengths, of runs whose rating is the mean of their last checkpoints."""
    ladder, rng, num_runs = LadderConfig(**keys), np.random.default_rng(1), 4
    found = forecast_ladder(ladder, num_runs, last, last)
    names, missed = [f"run {k}" for k in range(num_runs * last)] + [*ladder.players], []
    for _ in range(40):
        strengths = rng.normal(0, SPREAD, len(names))
        rated = simulate_ladder(ladder, dict(zip(names, strengths.tolist(), strict=True)), rng)
        errors = (rated.rating - strengths)[: num_runs * last].reshape(num_runs, last).mean(axis=1)
        missed += [a - b for a, b in itertools.combinations(errors, 2)]
        assert rated.games.sum() // 2 == found.num_games
    assert found.game_sd == pytest.approx(math.sqrt(np.mean(np.square(missed)) / 2), rel=0.2)
    assert found.games_a_run == pytest.approx(last * 2 * found.num_games / len(names), rel=0.15)


def test_all_play_all_by_hand():
    """6 runs and 2 others, 28 pairs of 20 games: 347 / sqrt(160) Elo if all were equals, or somewhat more."""
    found = forecast_ladder(LadderConfig(**ALL), 6, 1, 1)
    assert (found.num_games, found.games_a_run) == (560, 140)
    assert 347 / math.sqrt(160) < found.game_sd < 1.3 * 347 / math.sqrt(160)


def test_too_few_games_to_link_all_players_tell_nothing():
    few = forecast_ladder(LadderConfig(players=("p", "q"), max_games=40), 6, 1, 1)
    assert few.num_games == 40 and math.isinf(few.game_sd)


def test_a_forecast_by_hand():
    """9 runs of 90 s on 2 cores and 600 games of 1.5 s; differences of variance 2 / 3 (30^2 + 40^2)."""
    pilot = PilotConfig(seed_sd=30.0, game_sd=40.0, game_seconds=1.5, cores=2)
    core_hours, detectable = forecast(plan_of(ladder=ALL), pilot, 600)
    assert core_hours == pytest.approx((9 * 180 + 900) / 3600)
    assert forecast(plan_of(ladder=ALL, seeds=(0,)), pilot, 600) == (pytest.approx((3 * 180 + 900) / 3600), {})
    errors = {power: gap / math.sqrt(2 / 3 * 2500) for power, gap in detectable.items()}
    assert errors[0.5] == pytest.approx(3.31, abs=0.3)  # about Dunnett's bound of 2 and 4 degrees of freedom
    assert errors[0.5] < errors[0.8] < errors[0.95]


def pilot_study(folder, name: str, seconds: float = 60.0) -> str:
    """Results of two variants over two seeds: differences scatter by sqrt(2) 50, of which games explain 30."""
    estimate = {
        "mean": 0,
        "standard_error": 50,
        "half_width": 99,
        "measured": 30,
        "spread": 2**0.5 * 50,
        "num_seeds": 2,
    }
    run = {"variant": "a", "seed": 0, "ended": "yes", "failure": "", "parameters": 1, "weights_hash": "", "metrics": {}}
    run |= {"iterations": 2, "frames": 1, "steps": 1, "flops": 1.0, "name": "a-0"}
    row = {"variant": "b", "values": {}, "mean": estimate, "differences": {}, "difference": estimate}
    table = {"name": name, "base": "smoke", "reference": "a", "seeds": [0], "experiments": {}, "budgets": {}}
    table |= {"changed": {}, "num_games": {"gardner_chess": 100}, "curves": {}, "runs": {"a-0": run}}
    table |= {"measures": {"Elo on gardner_chess": {"form": ".0f", "variants": {"b": row}}}}
    table |= {"machine": {"runs": {"a-0": {"seconds": seconds, "devices": "cpu", "commits": []}}, "curves": {}}}
    (folder / name / "ladder").mkdir(parents=True)
    (folder / name / "study.json").write_text(json.dumps(table))
    (folder / name / "ladder" / "ratings.csv").write_text("player,games\na-0/2,80\na-0/1,7\nrandom,9\n")
    return str(folder / name)


def test_a_pilots_variances_and_seconds_by_hand(tmp_path):
    """Games: 30^2 a run at 80 games, so half at 160. Seeds: 50^2 - 30^2 = 40^2. 60 s on 3 cores."""
    pilot = PilotConfig(study=pilot_study(tmp_path, "pilot"), cores=3, seed_sd=7.0)
    found = read_pilot(pilot, 160, 99.0)
    assert found.game_sd == pytest.approx(30 / math.sqrt(2)) and found.seed_sd == pytest.approx(40)
    assert found.run_seconds == pytest.approx(180)
    assert read_pilot(PilotConfig(), 160, 99.0) == PilotConfig(game_sd=99.0)
    ratings = tmp_path / "pilot" / "ladder" / "ratings.csv"
    for text in "player,games\na-0/2", "player,games\na-0/2," + "8" * 200_000:
        ratings.write_text(text)
        with pytest.raises(RunError, match=r"ratings\.csv is no ratings\.csv of a ladder"):
            read_pilot(pilot, 160, 99.0)
    ratings.unlink()
    assert read_pilot(pilot, 160, 99.0).game_sd == 99.0
    with pytest.raises(RunError, match=r"elsewhere/study\.json cannot be read: No such file"):
        read_pilot(PilotConfig(study=str(tmp_path / "elsewhere")), 160, 99.0)


def test_a_plan_is_printed_before_anything_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pilot = pilot_study(tmp_path, "pilot")
    text = (
        'base = "smoke"\nseeds = [0, 1, 2]\n[budget]\nsteps = 3\n[variants.a]\n[variants.b]\nnetwork.hidden_size = 16\n'
    )
    ladder = '[ladder]\nmatching = "all"\ngames_per_pair = 4\n'
    (tmp_path / "s.toml").write_text(f'{text}{ladder}[pilot]\nstudy = "{pilot}"\ngame_seconds = 36.0\n')
    assert main(["study", "s.toml", "--plan"]) == 0
    said = capsys.readouterr().out
    assert "study s: 6 runs, 84 games, 0.9 core-hours" in said  # 7 players; 6 x 60 s and 84 x 36 s
    assert "a rating scatters by 40 Elo over seeds and by 55 Elo over 24 games" in said
    assert "Elo with a power of 80 %, of " in said
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "pilot",
        "s.toml",
    ]
    (tmp_path / "s.toml").write_text(text)
    assert main(["study", "s.toml", "--plan"]) == 0
    assert "it tells no difference" in capsys.readouterr().out
    (tmp_path / "s.toml").write_text(f"{text}[ladder]\nmax_games = 40\n")
    assert main(["study", "s.toml", "--plan"]) == 0
    assert "40 games are too few to link all players" in capsys.readouterr().out


def test_a_plan_counts_the_checkpoints_that_runs_write(tmp_path, monkeypatch, capsys):
    """Each third of 24: with `every = 1` a run counted 25, and with `last = 5` three iterations counted five."""
    monkeypatch.chdir(tmp_path)
    text = 'base = "quickstart"\nseeds = [0, 1]\n[changes]\ncheckpoint_every = 3\n[variants.a]\n[variants.b]\n'
    text += 'network.hidden_size = 16\n[budget]\niterations = {}\n[ladder]\nplayers = ["random"]\nevery = {}\n'
    said = []
    for iterations, every in ((24, 1), (24, 3), (3, 1), (3, 3)):
        (tmp_path / "s.toml").write_text(text.format(iterations, every))
        assert main(["study", "s.toml", "--plan"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != said[2] == said[3]
