"""Study files: what is read, what is refused and in which words."""

from pathlib import Path

import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from alphagateau import config
from alphagateau.config import MAX_INT, BudgetConfig, ConfigError, change, changes_of, find_file, load_study
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.search.config import PolicyConfig
from alphagateau.studies.plan import make_plan
from alphagateau.training.checks import check_experiment

STUDIES = sorted((Path(__file__).parents[2] / "experiments" / "studies").glob("*.toml"))
BASE = """
base = "smoke"
[budget]
steps = 100
[variants.base]
"""


def study_of(folder: Path, text: str):
    path = folder / "study.toml"
    path.write_text(text)
    return load_study(path)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_studies_that_come_with_the_package_can_be_planned(path):
    study = load_study(path)
    assert study.name == path.stem and find_file(path.stem, "study") == path
    plan = make_plan(study, str(path))
    assert len(plan.runs) == len(plan.levels or study.variants) * len(study.seeds)
    for variant in plan.variants:
        check_experiment(variant.experiment)
    assert f"alphagateau study experiments/studies/{path.name}" in path.read_text()


def test_defaults(tmp_path):
    study = study_of(tmp_path, BASE + "[ladder]\nsimulations = 8\n")
    assert (study.name, study.seeds, study.reference, study.budget) == ("study", (0,), "", BudgetConfig(steps=100))
    assert study.ladder and (study.ladder.players, study.ladder.every) == (("random",), MAX_INT)
    on_scale = study_of(tmp_path, BASE + '[ladder]\npool = "gardner_chess"\n').ladder
    assert on_scale and on_scale.players == ()  # a pool has players, and counts no games of the random mover
    assert study_of(tmp_path, BASE).ladder is None


def test_changed_keys_may_be_nested_dotted_or_quoted(tmp_path):
    text = (
        BASE + '[variants.b]\nnetwork.num_blocks = 2\n"search.num_simulations" = 8\ninit_from = "base"\nseedy.x.y = 1'
    )
    variant = study_of(tmp_path, text).variants["b"]
    assert changes_of(variant) == {"network.num_blocks": 2, "search.num_simulations": 8, "seedy.x.y": 1}


def test_another_architecture_keeps_the_keys_that_both_have():
    smoke = config.load(config.find_file("smoke", "experiment"))
    changed = change(smoke, {"network.architecture": "alphazero", "search.algorithm": "policy", "window.size": 64})
    assert changed.network == AlphaZeroConfig(hidden_size=8, num_blocks=1)
    assert (changed.search, changed.window.size) == (PolicyConfig(), 64)
    assert change(smoke, {}) == smoke


def test_a_table_of_changes_leaves_the_other_keys_as_they_are():
    """They took their defaults, in train(changes=...) and not in a study."""
    smoke = config.load(config.find_file("smoke", "experiment"))
    both = change(smoke, {"search": {"num_simulations": 3}, "network.hidden_size": 16})
    assert both == change(smoke, {"search.num_simulations": 3, "network": {"hidden_size": 16}})
    assert (both.search.max_num_considered_actions, both.network.num_blocks) == (
        smoke.search.max_num_considered_actions,
        smoke.network.num_blocks,
    )
    assert change(smoke, {"network": {}, "search": {}}) == smoke  # whose keys are all commented out
    with pytest.raises(ConfigError, match=r"network\.hidden_size is given twice: in a table, and by its dotted name"):
        change(smoke, {"network.hidden_size": 8, "network": {"hidden_size": 16}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "missing key base"),
        ('base = "smoke"', "missing key budget"),
        (BASE.replace("[variants.base]", ""), "missing key variants"),
        (BASE.replace("steps", "step"), 'unknown key "step"; did you mean steps?'),
        (BASE.replace("steps = 100", ""), "[budget]: a budget must name at least one of"),
        (BASE.replace("[variants.base]", "[variants]"), "variants must name at least one, as in [variants.base]"),
        ("seeds = []" + BASE, "seeds must be an array of at least one integer"),
        ("seeds = [1, 1]" + BASE, "seeds must be different integers from 0 to 2147483647, got [1, 1]"),
        ("seeds = 3" + BASE, "seeds must be an array of at least one integer, got 3"),
        ("sedes = [3]" + BASE, 'unknown key "sedes"; did you mean seeds?'),
        ('name = "../x"' + BASE, "name must be letters, digits"),
        ('reference = "bas"' + BASE, 'reference must be one of base, got "bas"'),
        (BASE + "seed = 3", "variants.base: seed is not a variant's to change, [seeds] of the study decides"),
        (BASE + "evaluation.num_games = 3", "evaluation.num_games is not a variant's to change, [ladder]"),
        (BASE + 'init_from = "bse"', 'variants.base.init_from: no variant "bse"; did you mean base?'),
        (BASE + 'init_from = "base"', "variants.base.init_from leads back to itself: base -> base"),
        (BASE + "init_from = 3", "variants.base.init_from must be a text, got 3"),
        (BASE + "budget = 3", "[variants.base.budget]"),
        (BASE + '[variants."a/b"]', 'variant "a/b": its name must be letters'),
        (BASE.replace("[variants.base]", "[variants]\nbase = 3"), "[variants.base] must be a table of keys, got 3"),
        (BASE + "[ladder]\ngames_per_pair = 3", "[ladder]: games_per_pair must be even"),
        (BASE + "[ladder]\ngame_per_pair = 4", "[ladder]: unknown key"),
        (BASE + '[ladder]\nanchor = "uci:stockfish"', "[ladder]: anchor must be a player's name, as in ratings"),
        (BASE + "[changes]\nseed = 3", "changes: seed is not"),
        (BASE + "[changes]\ninit_from = 'checkpoints/x'", "changes: init_from is a variant's key, and no experiment's"),
        ("direct_games = 2" + BASE, "direct_games needs [ladder], which plays them"),
        (BASE + "[ladder]\nboards = ['chess', 'chess']", "[ladder]: boards must be different, got chess, chess"),
        (BASE + "[ladder]\nopening_plies = 100", "[ladder]: opening_plies must be an integer from 0 to 64, got 100"),
        (BASE + '"network.num_blocks" = 1\nnetwork.num_blocks = 2', "network.num_blocks is given twice"),
        (BASE + "network.hidden_sise = 3", 'variants.base: unknown key "network.hidden_sise"; did you mean'),
        (BASE + '[variants.base.game]\nname = "chess"', 'variants.base: unknown key "game.name"; game has no keys'),
        (BASE + 'experiment = "smok"', "variants.base: smok: no such experiment; did you mean smoke?"),
        (BASE.replace("smoke", "smok"), "base: smok: no such experiment; did you mean smoke?"),
    ],
)
def test_a_wrong_study_is_one_sentence_that_names_the_file(tmp_path, text, said):
    with pytest.raises(ConfigError) as caught:
        make_plan(study_of(tmp_path, text), str(tmp_path / "study.toml"))
    assert str(caught.value).startswith(str(tmp_path / "study.toml")) and "\n" not in str(caught.value)
    assert said in str(caught.value)


def test_a_study_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="smoke_width: no such study; did you mean smoke_widths"):
        find_file("smoke_width", "study")
    with pytest.raises(ConfigError, match=r"nowhere\.toml: no such study file"):
        load_study("nowhere.toml")


KEYS = st.sampled_from(
    [
        "base",
        "seeds",
        "variants",
        "budget",
        "ladder",
        "changes",
        "name",
        "reference",
        "design",
        "factors",
        "pilot",
        "x",
        '"\\n"',
    ]
)
VALUES = st.sampled_from(
    ["[]", '["random"]', '"smoke"', "[1]", "2", "-1", "nan", "true", "{}", "{steps = 3}", "{a = {}}", "{a = {a = 1}}"]
)


@fuzzed(300)
@given(st.lists(st.tuples(KEYS, VALUES).map(" = ".join), max_size=5), st.binary(max_size=12))
def test_any_study_file_is_one_or_is_refused_in_one_sentence(tmp_path_factory, lines, rest):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes("\n".join(lines).encode() + rest)
    try:
        assert make_plan(load_study(path), str(path)).runs
    except ConfigError as error:
        assert str(path) in str(error) and "\n" not in str(error)
