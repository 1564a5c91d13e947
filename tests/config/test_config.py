"""Experiment files: what is read, what is refused and in which words, what is written."""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from alphagateau import config
from alphagateau.config import ConfigError, Experiment, SelfPlayConfig, dumps
from alphagateau.config.records import keys_of
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.giraffe.config import GiraffeConfig
from alphagateau.runs.run_folder import check_folder
from alphagateau.search.config import PolicyConfig
from alphagateau.search.gumbel.config import GumbelConfig

KEYS = tuple(dict.fromkeys(keys_of(Experiment)))

EXPERIMENTS = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
MINIMAL = """
game = "chess"
num_iterations = 3
[selfplay]
num_games = 16
num_plies = 32
"""
SMALL = Experiment(game="gardner_chess", num_iterations=2, selfplay=SelfPlayConfig(num_games=8, num_plies=8))


def loads(text: str, name: str = "experiment") -> Experiment:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            return config.load(path)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(path), name)) from None


def message_of(function, *arguments) -> str:
    with pytest.raises(ConfigError) as error:
        function(*arguments)
    message = str(error.value)
    assert len(message.splitlines()) == 1
    return message


def message_with(line: str, section: str = "") -> str:
    """What `loads` says of the minimal file with one more line in a section."""
    if section:
        head = "" if section == "selfplay" else f"[{section}]\n"
        return message_of(loads, f"{MINIMAL}{head}{line}", "x.toml")
    return message_of(loads, f"{line}\n{MINIMAL}", "x.toml")


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_experiment_file_loads_and_round_trips(path):
    experiment = config.load(path)
    assert loads(dumps(experiment)) == experiment
    assert f"alphagateau train experiments/{path.name}" in path.read_text()


def test_the_experiments_of_the_paper_are_there():
    assert {path.stem for path in EXPERIMENTS} >= {
        "quickstart",
        "smoke",
        "learning_speed_alphagateau",
        "learning_speed_alphazero",
        "pretrain_5x5",
        "finetune_8x8",
        "frame_window_256_none",
        "frame_window_256_1m",
        "frame_window_1024_131k",
    }


def test_defaults_and_given_values():
    experiment = loads(MINIMAL)
    assert experiment.game == "chess"
    assert experiment.selfplay == SelfPlayConfig(num_games=16, num_plies=32)
    assert experiment.search == GumbelConfig(num_simulations=128, max_num_considered_actions=16, gumbel_scale=1.0)
    assert experiment.network == GateauConfig(message="edge")
    assert experiment.training.loss == "policy_value"
    assert experiment.window.size == 1_000_000
    assert experiment.aim is True


def test_integer_where_a_number_is_expected_becomes_a_float():
    experiment = loads(MINIMAL + "[training]\nlearning_rate = 1")
    assert type(experiment.training.learning_rate) is float


def test_a_section_is_the_record_that_its_tag_names():
    experiment = loads(MINIMAL + "[network]\narchitecture = 'alphazero'\n[search]\nalgorithm = 'policy'")
    assert experiment.network == AlphaZeroConfig()
    assert experiment.search == PolicyConfig()
    giraffes = {"giraffe", "giraffe_moves"}
    assert set(config.NETWORKS) == {"gateau", "alphazero", "token_transformer", "chessformer"} | giraffes
    minimax = {"probability", "depth"}
    assert set(config.SEARCHES) == {"gumbel", "policy", "action_value", "state_value", "random"} | minimax


def test_dictionary_round_trip_and_flat_view():
    table = config.to_dict(SMALL)
    assert table["selfplay"]["num_games"] == 8
    assert config.from_dict(table) == SMALL
    flat = config.flatten(SMALL)
    assert list(flat) == [name for name in KEYS if name in flat]
    others = [*config.NETWORKS.configs.values(), *config.SEARCHES.configs.values(), config.DataConfig]
    of_others = {name.partition(".")[2] for name in KEYS if name not in flat}
    assert of_others <= {name for kind in others for name in config.fields_of(kind)}
    assert flat["selfplay.num_games"] == 8
    assert flat["game"] == "gardner_chess"


def test_written_file_explains_its_keys():
    text = dumps(SMALL)
    assert "num_plies = 8 # plies of each game slot in an iteration; 1 or more\n" in text
    assert max(map(len, text.splitlines())) <= 120


def test_describe_difference_names_the_keys():
    other = dataclasses.replace(SMALL, seed=4, selfplay=dataclasses.replace(SMALL.selfplay, num_games=16))
    assert config.describe_difference(SMALL, SMALL) == []
    assert config.describe_difference(SMALL, other) == [
        "seed: 0 -> 4",
        "selfplay.num_games: 8 -> 16",
    ]
    cnn = dataclasses.replace(SMALL, network=AlphaZeroConfig())
    assert config.describe_difference(SMALL, cnn) == [
        'network.architecture: "gateau" -> "alphazero"',
        "network.ghost_size: 16 -> nothing",
        'network.message: "edge" -> nothing',
        'network.neighbors: "incoming" -> nothing',
        "network.rematerialize: false -> nothing",
        'network.kernel: "auto" -> nothing',
        'network.board_statistics: "none" -> nothing',
        'network.readout: nothing -> "dense"',
    ]


def test_a_key_of_an_earlier_version_that_changes_nothing_is_passed_over():
    """Published checkpoints and old runs name it; its other value is refused as any unknown key."""
    table = {"architecture": "chessformer", "far_offsets": "zero"}
    assert config.NETWORKS.read(table) == config.NETWORKS.read({"architecture": "chessformer"})
    assert config.NETWORKS.read_untrusted(table, drop_unknown=False) == ({"architecture": "chessformer"}, [])
    with pytest.raises(ConfigError, match='unknown key "far_offsets"'):
        config.NETWORKS.read(table | {"far_offsets": "nearest"})


def test_a_plugins_kernel_is_no_choice_of_programs(tmp_path, monkeypatch):
    """Of its network the key may be what weights depend on; of ours it may change from one start to the next."""
    (tmp_path / "config.toml").write_text(dumps(SMALL))
    other = dataclasses.replace(SMALL, network=dataclasses.replace(SMALL.network, kernel="xla"))
    check_folder(tmp_path, other)
    monkeypatch.setattr(type(config.NETWORKS), "is_of_plugin", lambda register, name: name == "gateau")
    with pytest.raises(ConfigError, match=r'another experiment \(network\.kernel: "auto" -> "xla"\)'):
        check_folder(tmp_path, other)


def test_numbers_of_numpy_are_numbers():
    """They were refused, as an integer that is "a int64"."""
    changes = {"seed": np.int64(3), "training": {"learning_rate": np.float32(0.5), "mirror": np.bool_(True)}}
    made = config.from_dict({**config.to_dict(SMALL), **changes})
    assert (made.seed, made.training.learning_rate, made.training.mirror) == (3, 0.5, True)
    assert type(made.seed) is int and dataclasses.replace(SMALL, seed=np.int64(4)).seed == 4
    with pytest.raises(ConfigError, match="seed must be an integer"):
        dataclasses.replace(SMALL, seed=np.array([4]))


def test_tables_however_deep_are_one_sentence():
    with pytest.raises(ConfigError, match=r'unknown key "network\.a"'):
        loads(f"network.{'.'.join('a' * 3000)} = 1")


def test_an_experiment_made_in_code_is_checked_too():
    message = message_of(lambda: dataclasses.replace(SMALL, seed=-1))
    assert message == "seed must be an integer from 0 to 2147483647, got -1"
    message = message_of(lambda: SelfPlayConfig(num_games=8, num_plies=True))
    assert message == "num_plies must be an integer from 1 to 2147483647, got true"
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.seed = 3


@pytest.mark.parametrize(
    ("line", "section", "expected"),
    [
        ("num_sims = 3", "selfplay", 'unknown key "selfplay.num_sims"; did you mean selfplay.num_'),
        ("num_games = 8", "", 'unknown key "num_games"; did you mean selfplay.num_games?'),
        ("sed = 3", "", 'unknown key "sed"; did you mean seed?'),
        ("attacks = true", "network", 'unknown key "network.attacks", which another network has; valid keys: arch'),
        ('"a\\nb" = 3', "", r'unknown key "a\nb"; '),
        ("xyzzy = 3", "", 'unknown key "xyzzy"; valid keys: game, seed, num_iterations'),
        ("x = 3", "selfplai", 'unknown key "selfplai"; did you mean selfplay?'),
        ('seed = "7"', "", 'seed must be an integer from 0 to 2147483647, got "7"'),
        ("seed = true", "", "seed must be an integer from 0 to 2147483647, got true"),
        ("seed = 7.0", "", "seed must be an integer from 0 to 2147483647, got 7.0"),
        ("seed = -7", "", "seed must be an integer from 0 to 2147483647, got -7"),
        ("seed = 0x" + "f" * 5000, "", "got a number of more than 30 digits"),
        ("architecture = 0x" + "f" * 5000, "network", "got a number of more than 30 digits"),
        ("seed = " + "9" * 5000, "", "not TOML"),
        ("seed = 1979-05-27", "", "got a date"),
        ("aim = 1", "", "aim must be true or false, got 1"),
        ("platform = 'cuda'", "", 'must be one of "auto", "cpu", "gpu", "tpu", got "cuda"'),
        ("platform = ['cpu']", "", 'must be one of "auto", "cpu", "gpu", "tpu", got an array'),
        ("learning_rate = nan", "training", "must be a finite number from 1e-09 to 1, got nan"),
        ("learning_rate = true", "training", "must be a finite number from 1e-09 to 1, got true"),
        ("max_weight_norm = inf", "health", "must be a finite number, 0 or more, got inf"),
        ("network = 3", "", "[network] must be a table of keys, got 3"),
        ("health = 3", "", "[health] must be a table of keys, got 3"),
        (
            "architecture = 'resnet'",
            "network",
            'network.architecture must be one of "gateau", "alphazero", "token_transformer", "chess',
        ),
        ("architecture = ['gateau']", "network", '"giraffe_moves", got an array'),
        ("hidden_sizes = 8", "network", 'unknown key "network.hidden_sizes"; did you mean network.hidden_size?'),
        (
            "algorithm = 'policy'\nnum_simulations = 8",
            "search",
            'unknown key "search.num_simulations", which another search has; valid',
        ),
        ("algorithm = 'alphabeta'", "search", 'search.algorithm must be one of "gumbel", "probability", "depth", '),
        ("num_simulations = 0", "search", "search.num_simulations must be an integer from 1 to 65536, got 0"),
        ("loss = 3", "training", "training.loss must be a text, got 3"),
        (
            "batch_size = 100",
            "training",
            "(100) must be divisible by num_shares (8): use 96 or 104",
        ),
        (
            "batch_size = 3",
            "training",
            "training.batch_size (3) must be divisible by num_shares (8): use 8",
        ),
        (
            "size = 100",
            "window",
            "window.size (100) must be divisible by num_shares (8): use 96 or",
        ),
        ("size = 128", "window", "training.batch_size (256) must be at most 128, window.size"),
        (
            "num_shares = 3",
            "",
            "selfplay.num_games (16) must be divisible by num_shares (3): use 15 or 18",
        ),
        ("wait_for_result = true", "targets", "targets.wait_for_result needs selfplay.continue_games = true"),
        (
            "full_search_share = 0.5\ncheap_simulations = 128",
            "selfplay",
            "selfplay.cheap_simulations (128) must be below 128, search.num_simulations",
        ),
        ("td_lambda = 1.5", "targets", "targets.td_lambda must be a finite number from 0 to 1"),
        (
            "normalization = 'ghost'\nghost_size = 48",
            "network",
            "training.batch_size (256) must be divisible by num_shares (8) times network.ghost_size (48): use 384",
        ),
        (
            "num_parts = 3",
            "training",
            "training.batch_size (256) must be divisible by num_shares (8) times training.num_parts (3): use 240",
        ),
        ("num_games = 7", "evaluation", "evaluation.num_games (7) must be divisible by 2"),
        ("boards = 'los_alamos_chess 1'", "selfplay", "game (chess) must be one of selfplay.boards, los_alamos_chess"),
        ("full_search_share = 0", "selfplay", "full_search_share must be a finite number from 1e-06 to 1, got 0"),
        ("resign_plies = 40_000", "selfplay", "resign_plies must be an integer from 0 to 32767, got 40000"),
        ("beta2 = 1", "training", "training.beta2 must be a finite number from 0 to 0.999999, got 1"),
        ("epsilon = 0", "training", "training.epsilon must be a finite number from 1e-30 to 1, got 0"),
        (
            "schedule = 'cosine'\nwarmup_steps = 500\ndecay_steps = 200",
            "training",
            "training.warmup_steps (500) must be below 200, training.decay_steps",
        ),
        ("optimizer = 'adadelta'\nweight_decay = 0.5", "training", 'has no meaning for training.optimizer "adadelta"'),
        ("board_statistics = 'chess,'", "network", 'network.board_statistics names "", expected chess'),
        (
            "num_simulations = 8\n[network]\nnormalization = 'ghost'\nghost_size = 24\n[training]\nbatch_size = 192\n"
            "material_positions = 1000",
            "search",
            "network.ghost_size (24) must divide 256, the lesson's batch",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(line, section, expected):
    message = message_with(line, section)
    assert message.startswith("x.toml: ")
    assert expected in message


def test_labels_need_a_network_without_history():
    text = MINIMAL.split("[")[0] + "[data]\npath = 'labels'\n"
    assert message_of(loads, text, "x.toml") == (
        "x.toml: [data] needs network.history = false: labelled positions have no past"
    )
    assert loads(text + "[network]\nhistory = false").data.frames_per_iteration == 65_536
    uneven = text + "frames_per_iteration = 1000\n[network]\nhistory = false"
    assert "data.frames_per_iteration (1000) must be divisible by training.batch_size (256): use 768 or 1024" in (
        message_of(loads, uneven)
    )
    assert not loads(text + "[network]\narchitecture = 'token_transformer'").network.history


def test_an_experiment_without_frames_is_refused():
    assert message_of(loads, MINIMAL.split("[")[0], "x.toml") == (
        "x.toml: an experiment needs [selfplay] or [data], from which its frames come, and not both"
    )


def test_a_key_in_another_table_is_refused_with_its_place():
    message = message_of(loads, MINIMAL + "num_simulations = 4", "x.toml")
    assert message == 'x.toml: unknown key "selfplay.num_simulations"; did you mean search.num_simulations?'


def test_the_network_of_a_manifest():
    table = {"architecture": "alphazero", "hidden_size": 8, "num_blocks": 1}
    assert config.NETWORKS.read(table) == AlphaZeroConfig(hidden_size=8, num_blocks=1)
    assert "architecture must be one of" in message_of(config.NETWORKS.read, {"architecture": "resnet"})


def test_missing_key_is_explained():
    assert message_of(loads, 'game = "chess"', "x.toml") == (
        "x.toml: missing key num_iterations (iterations of self-play and training; 1 or more)"
    )
    assert "missing key selfplay.num_games" in message_of(loads, MINIMAL.partition("num_games")[0])


def test_syntax_error_gives_file_and_line(tmp_path):
    path = tmp_path / "x.toml"

    def message_of_text(text: str) -> str:
        path.write_text(text)
        return message_of(config.load, path).removeprefix(str(path))

    expected = " line 2: not TOML: Expected '=' after a key in a key/value pair"
    assert message_of_text('game = "chess"\nseed 3\n') == expected
    assert message_of_text('game = """che\n').startswith(" line 1: not TOML")
    assert message_of_text("a = " + "[" * 100_000).startswith(": not TOML")


def test_files_that_cannot_be_read(tmp_path):
    near = tmp_path / "quickstart.toml"
    near.write_text(MINIMAL)
    wrong = tmp_path / "quikstart.toml"
    assert message_of(config.load, wrong) == (f"{wrong}: no such experiment file; did you mean {near}?")
    assert "did you mean smoke?" in message_of(config.load, tmp_path / "elsewhere" / "smoke.toml")
    assert "Is a directory" in message_of(config.load, tmp_path)
    assert "Not a directory" in message_of(config.load, near / "x.toml")
    assert "null byte" in message_of(config.load, "a\0b")
    (tmp_path / "latin.toml").write_bytes(b"# one\n# caf\xe9\n")
    assert "line 2 is not UTF-8 text" in message_of(config.load, tmp_path / "latin.toml")


def test_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())
    assert config.load(path) == loads(MINIMAL)


@pytest.fixture(scope="module")
def minimal_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "minimal.toml"
    path.write_text(MINIMAL)
    return path


def test_experiments_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config.load(config.find_file("smoke", "experiment")) == config.load(EXPERIMENTS[0].with_name("smoke.toml"))
    assert config.find_file("smoke.toml", "experiment") == Path("smoke.toml")
    (tmp_path / "smoke").write_text(MINIMAL)
    assert config.load(config.find_file("smoke", "experiment")).num_iterations == 3
    assert message_of(config.find_file, "smoek", "experiment") == "smoek: no such experiment; did you mean smoke?"
    assert "expected a file, or one of chess_from_6x6, " in message_of(config.find_file, "xyz", "experiment")


def reads_or_refuses(function, *arguments):
    """An Experiment that round trips, or one line; anything else is a failure."""
    try:
        experiment = function(*arguments)
    except ConfigError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert loads(dumps(experiment)) == experiment


scalars = st.one_of(
    st.sampled_from(["true", "-1", "0", "8", "64", "1e3", "0.5", "nan", "-inf", "1979-05-27", "[]"]),
    st.sampled_from(["'chess'", "'gateau'", "{}", "''", "{a = 1}", "[[1], 'x']", "0x" + "f" * 4000]),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text("ab\"'\\\n=#é", max_size=8),
)
keys = st.sampled_from([*KEYS, "network", "selfplay", "num_games", "x", "a.b.c", '"\\n"'])
assignments = st.tuples(keys, scalars).map(lambda pair: f"{pair[0]} = {pair[1]}")
fuzz = fuzzed(150)


@fuzz
@given(st.text())
def test_any_text_is_read_or_refused(text):
    reads_or_refuses(loads, text)
    reads_or_refuses(loads, MINIMAL + text)


@fuzz
@given(st.lists(assignments, max_size=4))
def test_any_assignments_are_read_or_refused(lines):
    required = ["game = 'chess'", "num_iterations = 1"]
    games = ["selfplay.num_games = 8", "selfplay.num_plies = 8", "search.num_simulations = 2"]
    reads_or_refuses(loads, "\n".join([*required, *games, *lines]))
    given_keys = {line.partition(" = ")[0] for line in lines}
    rest = [line for line in required + games if line.partition(" = ")[0] not in given_keys]
    reads_or_refuses(loads, "\n".join([*rest, *lines]))


@fuzz
@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(minimal_file, content):
    path = minimal_file.with_name("fuzzed.toml")
    path.write_bytes(MINIMAL.encode() + content)
    reads_or_refuses(config.load, path)


unit = st.floats(0, 1)
nasty = st.one_of(st.text(), st.text("\\\"'\n\r\t\x00\x1f\x7f\u2028#[]=\U0001f600", max_size=12))


@st.composite
def experiments(draw) -> Experiment:
    """Valid experiments that differ from the defaults in keys of every kind."""
    shares = draw(st.integers(1, 16))
    batch_size = shares * draw(st.integers(1, 64))
    return Experiment(
        game=draw(nasty),
        seed=draw(st.integers(0, config.MAX_INT)),
        num_iterations=draw(st.integers(1, 1000)),
        aim=draw(st.booleans()),
        num_shares=shares,
        network=draw(st.sampled_from([AlphaZeroConfig, GateauConfig]))(batch_norm_momentum=draw(unit))
        if draw(st.booleans())
        else GiraffeConfig(view=draw(st.sampled_from(["white", "mover"]))),
        search=draw(st.sampled_from(list(config.SEARCHES.configs.values())))(),
        selfplay=SelfPlayConfig(num_games=shares * draw(st.integers(1, 64)), num_plies=draw(st.integers(1, 256))),
        window=config.WindowConfig(size=batch_size * draw(st.integers(1, 1000))),
        training=config.TrainingConfig(
            loss=draw(nasty), batch_size=batch_size, learning_rate=draw(st.floats(1e-9, 1, exclude_min=True))
        ),
        targets=config.TargetsConfig(bootstrap=draw(st.booleans()), td_lambda=draw(unit)),
        health=config.HealthConfig(max_weight_norm=draw(st.floats(0, allow_infinity=False))),
    )


@fuzz
@given(experiments())
def test_written_experiments_are_read_back_equal(experiment):
    assert loads(dumps(experiment)) == experiment
    assert config.from_dict(config.to_dict(experiment)) == experiment


@pytest.mark.parametrize("key", ["num_simulations = 64", "average_mirrors = true"])
def test_a_match_at_the_end_has_no_key_that_its_search_has_not(key):
    """It was left out without a word, and the model card told of simulations that were none."""
    text = MINIMAL + f"[evaluation]\n{key}\n[search]\nalgorithm = "
    with pytest.raises(ConfigError, match=f'evaluation.{key.split()[0]} has no meaning for search.algorithm "action_'):
        loads(text + "'action_value'")
    loads(text + "'gumbel'")


def test_cheap_searches_need_a_search_that_can_be_cheap():
    with pytest.raises(ConfigError, match="full_search_share below 1 needs search\\.algorithm"):
        loads(MINIMAL + "full_search_share = 0.5\n[search]\nalgorithm = 'policy'")
