"""The command line: help, options, typos, exit codes; none of it waits for JAX."""

import dataclasses
import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from command_lines import read_experiment
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from alphagateau import config
from alphagateau.cli.arguments import UsageError, _reader, help_of, parse
from alphagateau.cli.experiments import check, parse_experiment
from alphagateau.commands.ladder import read_arguments
from alphagateau.commands.main import COMMANDS, main
from alphagateau.config import ConfigError, Experiment, dumps
from alphagateau.config.records import fields_of, key, keys_of, record
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.search.config import PolicyConfig

MINIMAL = """
game = "chess"
num_iterations = 3
[selfplay]
num_games = 16
num_plies = 32
"""
MODULES = {name: importlib.import_module(f"alphagateau.commands.{name}") for name in COMMANDS}


def loads(text: str) -> Experiment:
    return config.from_dict(tomllib.loads(text))


@pytest.fixture(scope="module")
def minimal_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "minimal.toml"
    path.write_text(MINIMAL)
    return path


@pytest.fixture(autouse=True)
def one_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def plain(text: str) -> str:
    """The text of tyro's boxes, on one line."""
    return " ".join(re.sub(r"[│╭╮╰╯─\n]", " ", text).split())


def test_help_names_the_commands(capsys):
    assert main(["--help"]) == 0
    text = plain(capsys.readouterr().out)
    for name, module in MODULES.items():
        assert f" {name} {module.Arguments.__doc__.partition(chr(10))[0]}" in text
    assert main([]) == 2


def test_no_line_of_help_is_wider_than_the_terminal_but_an_example(capsys, monkeypatch):
    """Paragraphs went on to the next line in the middle of a word."""
    monkeypatch.setenv("COLUMNS", "80")
    for words in (["--help"], *([name, "--help"] for name in COMMANDS), ["train", "smoke", "--help", "all"]):
        assert main(words) == 0
        said = capsys.readouterr().out
        lines = said.splitlines()
        assert "(default: )" not in said, words
        assert [line for line in lines if len(line) > 80 and not line.startswith("Example: ")] == [], words


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_in_a_commands_help_is_understood(name, capsys):
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    (example,) = re.findall(r"^Example: alphagateau (.*)$", shown, re.MULTILINE)
    command, *words = shlex.split(example)
    assert command == name
    if name == "ladder":
        assert read_arguments(words)[0].players == ("checkpoints/quickstart", "random")
    elif name in ("train", "doctor"):
        assert parse_experiment(MODULES[name].Arguments, words, name)[1].stem == "quickstart"
    else:
        assert parse(MODULES[name].Arguments, words, name)


def test_help_of_train_lists_every_key_with_its_help_and_default(minimal_file):
    words = [str(minimal_file), "--help", "all"]
    text = plain(subprocess_output(["train", *words]))
    experiment = loads(MINIMAL)
    for name, value in config.flatten(experiment).items():
        section, _, key = name.rpartition(".")
        record = getattr(experiment, section) if section else experiment
        assert "--" + name.replace("_", "-") in text
        assert f"{config.fields_of(type(record))[key].description} (default: {value})" in text
    for flag in ("--init-from", "--run", "--runs", "--stop-after", "--coordinator", "--num-processes", "--process-id"):
        assert f"{flag} " in text
    assert "[EXPERIMENT]" in text
    assert "(required)" in plain(help_of(MODULES["train"].Arguments, "train"))


def test_a_plug_in_that_ends_the_process_has_its_text_said(monkeypatch, capfd):
    """`sys.exit("install X")`: the text was read as a number, with a traceback."""
    monkeypatch.setattr(importlib.import_module("alphagateau.commands.info"), "run", lambda arguments: sys.exit("bye"))
    assert main(["info", "x"]) == 2
    assert capfd.readouterr().err == "alphagateau: bye\n"


def test_a_key_of_numbers_is_shown_as_it_is_written():
    """Only a plug-in may have one; help ended in a traceback."""

    @record
    class Keys:
        sizes: tuple[int, ...] = key("", default=(1, 2))

    (_, spec) = get_args(_reader(fields_of(Keys)["sizes"]))
    assert spec.str_from_instance((1, 2)) == ["1,2"]


def test_help_of_train_is_by_section(minimal_file, capfd):
    """It was 341 lines."""
    shown = {}
    for section in ("", "window", "training"):
        assert main(["train", str(minimal_file), "--help", *section.split()]) == 0
        shown[section] = capfd.readouterr().out
    assert "--seed INT" in shown[""] and "--window.size" not in shown[""] and shown[""].count("\n") < 80
    assert re.findall(r"--[a-z.]+", shown["window"]) == ["--window.size", "--window.keep"]
    assert "--training.batch-size INT" in shown["training"]
    assert main(["train", "--help", "widow"]) == 2
    assert "expected one of network, search, " in capfd.readouterr().err


@pytest.mark.parametrize(("section", "key"), [("", "game"), ("training", "training.loss"), ("network", "architecture")])
def test_help_of_a_board_a_loss_and_an_architecture_lists_what_they_may_be(minimal_file, capfd, section, key):
    from alphagateau.config.losses import LOSSES
    from alphagateau.games.entries import GAMES

    register = {"game": GAMES, "training.loss": LOSSES, "architecture": config.NETWORKS}[key]
    assert main(["train", str(minimal_file), "--help", *section.split()]) == 0
    shown = re.search(rf"--(?:network\.)?{re.escape(key)}\s+\{{([^}}]*)\}}", capfd.readouterr().out)
    assert shown and set(re.sub(r"\s", "", shown[1]).split(",")) == set(register)


def subprocess_output(words: list[str], code: int = 0) -> str:
    """What a command prints, in a process of its own that must import no JAX."""
    program = f"import sys; from alphagateau.commands.main import main; code = main({words!r}); "
    program += "print(*sorted({'jax', 'flax', 'aim'} & set(sys.modules)), sep='', file=sys.stderr); sys.exit(code)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == code and done.stderr.splitlines()[-1] == "", done.stderr
    return done.stdout


def test_results_and_text_are_read_without_jax(tmp_path):
    """Neither ratings and their page, nor a file without games to replay, need the rules."""
    table, games, text = tmp_path / "results.csv", tmp_path / "games.pgn", tmp_path / "text.pgn"
    table.write_text("player,opponent,wins,draws,losses\na,b,3,0,1\n")
    games.write_text('[White "a"]\n[Black "b"]\n\n1. e4 1-0\n')
    text.write_text("% no game\n")
    assert "a" in subprocess_output(["rate", str(table), "--out", str(tmp_path / "ratings")])
    assert "a" in subprocess_output(["rate", str(games)])
    assert not subprocess_output(["pgn", str(text)], code=2)


def test_help_and_typos_wait_for_no_jax():
    code = "import sys; from alphagateau.commands.main import COMMANDS, main\n"
    code += "for name in COMMANDS:\n    assert main([name, '--help']) == 0 and main([name, '--xyzzy']) == 2\n"
    code += "assert main(['trian']) == 2 and main(['train', 'smoke', '--seed', 'x']) == 2\n"
    code += "print({'jax', 'flax', 'aim'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"]])
def test_a_reader_that_goes_away_is_no_error_to_tell_of(words):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "alphagateau.commands.main", *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_options_override_any_key(minimal_file):
    options = (
        "--no-aim --search.num-simulations 32 --selfplay.num_plies=8 --network.dtype bfloat16 "
        "--selfplay.continue-games --search.gumbel-scale 0 --seed 1 --seed 2"
    )
    experiment = read_experiment(minimal_file, options.split())
    assert experiment.aim is False
    assert experiment.search.num_simulations == 32
    assert experiment.selfplay.num_plies == 8
    assert experiment.network.dtype == "bfloat16"
    assert experiment.selfplay.continue_games is True
    assert experiment.seed == 2
    assert type(experiment.search.gumbel_scale) is float
    assert read_experiment(minimal_file) == loads(MINIMAL)


@pytest.mark.parametrize("name", config.flatten(loads(MINIMAL)))
def test_options_take_every_key_of_a_file(minimal_file, name):
    value = config.flatten(loads(MINIMAL))[name]
    flag = "--" + name.replace("_", "-")
    switch = flag if value is True else re.sub(r"(--(?:\w+\.)?)", r"\1no-", flag, count=1)
    words = [switch] if isinstance(value, bool) else [flag, str(value)]
    assert config.flatten(read_experiment(minimal_file, words))[name] == value


def test_an_option_may_choose_another_architecture_or_search(minimal_file):
    words = ["--network.architecture", "alphazero", "--network.num-blocks", "2", "--search.algorithm", "policy"]
    experiment = read_experiment(minimal_file, ["--network.hidden-size", "32", *words])
    assert experiment.network == AlphaZeroConfig(hidden_size=32, num_blocks=2)
    assert experiment.search == PolicyConfig()
    words = ["--network.num-heads=2", "--network.position", "bias", "--network.architecture=chessformer"]
    experiment = read_experiment(minimal_file, words)  # keys of the one chosen, wherever they stand
    assert experiment.network == ChessformerConfig(num_heads=2, position="bias")


def test_of_an_architecture_given_twice_the_last_counts_as_of_any_option(minimal_file):
    for twice in (
        ["--network.architecture", "alphazero", "--network.architecture", "gateau"],
        ["--network.architecture=alphazero", "--network.architecture", "gateau"],
        ["--network.architecture", "alphazero", "--network.architecture=gateau"],
    ):
        experiment = read_experiment(minimal_file, ["--network.hidden-size", "32", *twice])
        assert experiment.network == read_experiment(minimal_file, ["--network.hidden-size", "32"]).network, twice
        assert experiment.network.architecture == "gateau"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--sead 3", 'unknown option "--sead"; did you mean --seed?'),
        ("--num-games 3", 'unknown option "--num-games"; did you mean --'),
        ("--selfplay.num-simulations 3", "did you mean --search.num-simulations?"),
        ("--init-form x", "did you mean --init-from?"),
        ("--xyzzy 3", 'unknown option "--xyzzy"; --help lists them all'),
        ("--seed", "--seed needs a value"),
        ("--seed --no-aim", "--seed needs a value"),
        ("--seed x", 'seed must be an integer from 0 to 2147483647, got "x"'),
        ("--seed -1", "seed must be an integer from 0 to 2147483647, got -1"),
        ("--training.learning-rate nan", "must be a finite number from 1e-09 to 1, got nan"),
        ("--platform cuda", 'platform must be one of "auto", "cpu", "gpu", "tpu", got "cuda"'),
        ("--network.architecture resnet", 'must be one of "gateau", "alphazero", "token_transformer", "chessformer", '),
        ("--network.architecture alphazero --network.message edge", 'unknown option "--network.message"'),
        ("--no-aim=1", 'unexpected argument "1"'),
        ("--aim false", 'unexpected argument "false"'),
        ("--num-shares 3", "with the options given: selfplay.num_games (16) must be divisible by"),
    ],
)
def test_wrong_options_get_one_line_and_exit_code_2(minimal_file, words, said, capfd):
    assert main(["train", str(minimal_file), *words.split()]) == 2
    out, error = capfd.readouterr()
    assert said in error and error.count("\n") == 1 and error.startswith("alphagateau: ") and not out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train", "alphagateau train quickstart"),
        ("train quickstrat", "no such experiment; did you mean quickstart?"),
        ("doctor --seed 3", "doctor needs an experiment"),
        ("trian", "unknown command 'trian': did you mean train?"),
        ("fly", "expected one of train, info"),
        ("info", "info needs PATH, as in: alphagateau info checkpoints/quickstart --json"),
        ("info a b", 'unexpected argument "b"'),
        ("match random", "match needs A and B, as in: alphagateau match"),
        ("match a b --games x", '--games must be a whole number, 0 or more, got "x"'),
        ("match a b --games -2", "--games"),
        ("match a b --games 3", "--games must be even, as each opening is played with both colors, got 3"),
        ("match a b --sprt 5", "--sprt must be two Elo differences such as 0,10, got '5'"),
        ("match a b --sprt 10,0", "--sprt: elo0 is 10.0 and elo1 0.0, expected elo0 < elo1"),
        (
            "match a b --sprt 0,inf",
            "--sprt: elo0 is 0.0 and elo1 inf, expected Elo differences whose",
        ),
        ("train smoke --search.algorithm random", "evaluation.num_games must be 0 with search.algorithm"),
        ("publish a b --note Weak --note=Small", "--note is given twice: give all of its values at once"),
        ("ladder random --merge a --merge b", "--merge is given twice"),
        ("match a b --opening-ply 4", 'unknown option "--opening-ply"; did you mean --opening-plies?'),
        ("rate a --method elo", '--method must be one of "bradley-terry", "history", "wls", got "elo"'),
        ("doctor smoke --platfrom cpu", "did you mean --platform?"),
        ("ladder", "ladder file"),
        ("ladder random --games-per-pair 3", "games_per_pair must be even"),
        ("ladder random --target-error x", 'target_error must be a finite number, 0 or more, got "x"'),
        ("ladder nowhere.toml", "nowhere.toml: no such ladder file"),
    ],
)
def test_wrong_commands_get_one_line_and_exit_code_2(words, said, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    out, error = capfd.readouterr()
    assert said in error and error.count("\n") == 1 and not out


def test_an_error_has_its_sentence_where_output_is_ascii():
    """The rule below the title of tyro's box ended it before it began."""
    program = (
        "import sys; from alphagateau.commands.main import main; sys.exit(main(['match', 'a', 'b', '--games', 'x']))"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 2 and done.stderr.startswith("alphagateau: --games must be a whole number, 0 or more")


def test_ctrl_c_is_a_word_and_an_exit_code(monkeypatch, capfd):
    def interrupted(name, words):
        raise KeyboardInterrupt

    monkeypatch.setattr("alphagateau.commands.main.run_command", interrupted)
    assert main(["match", "a", "b"]) == 130
    assert capfd.readouterr().err == "alphagateau: interrupted\n"


def test_too_little_memory_is_a_sentence(monkeypatch, capfd):
    def greedy(name, words):
        raise MemoryError

    monkeypatch.setattr("alphagateau.commands.main.run_command", greedy)
    assert main(["rate", "a.pgn"]) == 1
    assert capfd.readouterr().err.startswith("alphagateau: there is not enough memory")


def test_sprt_takes_two_bounds():
    assert parse(MODULES["match"].Arguments, ["a", "b", "--sprt", "0,10"], "match").sprt == (0.0, 10.0)
    assert parse(MODULES["match"].Arguments, ["a", "b"], "match").sprt is None


def test_a_ladder_file_and_options_together(tmp_path):
    path = tmp_path / "few.toml"
    path.write_text('players = ["a", "random"]\nmatching = "all"\nseed = 7\n')
    options = ["--boards", "chess,gardner_chess", "--matching", "paper", "--out", "there"]
    ladder, folder, _ = read_arguments([str(path), *options])
    assert ladder.players == ("a", "random") and ladder.boards == ("chess", "gardner_chess")
    assert (ladder.matching, ladder.seed, str(folder)) == ("paper", 7, "there")
    ladder, folder, _ = read_arguments(["--seed", "3", "a", "b?search=policy", "--every", "2"])
    assert ladder == config.LadderConfig(players=("a", "b?search=policy"), seed=3, every=2)
    assert str(folder) == "eval/ladder"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"game": "go"}, "game: unknown game 'go'"),
        (
            {"selfplay.num_plies": 257},
            "selfplay.num_plies (257) must be at most 256, the longest game of gardner_chess",
        ),
        (
            {"training.loss": "policy_valeu"},
            'got "policy_valeu"; did you mean policy_value?',
        ),
        (
            {"training.loss": "policy_wdl"},
            'network.value_head must be "wdl" for training.loss "policy_wdl", got "scalar"',
        ),
        (
            {"network.value_head": "wdl"},
            'network.value_head must be "scalar" or "bins" for training.loss "policy_value", got "wdl"',
        ),
        (
            {"training.loss": "action_value_log"},
            'training.loss "action_value_log" learns from labels, and the frames of [selfplay] have none',
        ),
        (
            {"evaluation.opening_plies": 0},
            "8 different openings of 0 plies of gardner_chess were asked for, and 1 found",
        ),
        ({"evaluation.opening_plies": 2, "evaluation.num_games": 128}, "64 different openings of 2 plies"),
    ],
)
def test_what_only_games_and_losses_can_tell_is_said_before_a_run(changes, said):
    table = config.to_dict(read_experiment("smoke"))
    for name, value in changes.items():
        section, _, key = name.rpartition(".")
        (table[section] if section else table)[key] = value
    with pytest.raises(ConfigError) as error:
        check(config.from_dict(table), "x.toml")
    assert str(error.value).startswith("x.toml: ") and said in str(error.value)
    assert "\n" not in str(error.value)


def test_openings_that_cannot_exist_stop_a_run_before_it_has_a_folder(tmp_path, capfd):
    words = ["train", "smoke", "--runs", str(tmp_path), "--evaluation.opening-plies", "0"]
    assert main(words) == 2
    assert "evaluation.opening_plies" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_experiment_that_can_be_run_passes():
    check(read_experiment("smoke"), "smoke")


def reads_or_refuses(words: list[str]) -> None:
    """An Experiment that round trips, or one line; anything else is a failure."""
    try:
        experiment = read_experiment(words[0], words[1:])
    except (ConfigError, UsageError) as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert loads(dumps(experiment)) == experiment


FLAGS = [f"--{name}" for name in dict.fromkeys(keys_of(config.Experiment))]
VALUES = st.one_of(
    st.sampled_from(["true", "-1", "0", "8", "64", "1e3", "0.5", "nan", "-inf", "gateau", "alphazero", "policy", ""]),
    st.text("ab\"'\\\n=#é-", max_size=8),
)
WORDS = st.one_of(
    st.sampled_from([*FLAGS, "--aim", "--no-aim", "--", "-", "--selfplay.no-continue-games", "--=", "x"]),
    st.tuples(st.sampled_from([f"{flag}=" for flag in FLAGS]), VALUES).map("".join),
    VALUES.filter(lambda word: word not in ("-h", "--help")),
)


@fuzzed(40)
@given(st.lists(WORDS, max_size=5))
def test_any_command_line_is_read_or_refused(minimal_file, words):
    reads_or_refuses([str(minimal_file), *words])


def test_argument_records_are_frozen():
    for module in MODULES.values():
        assert dataclasses.is_dataclass(module.Arguments) and module.Arguments.__dataclass_params__.frozen


def test_no_command_waits_for_a_thread_once_it_has_ended():
    """A run that could not begin stayed for a minute after its error: its programs were being compiled."""
    code = "import sys, threading, alphagateau.commands.main as m; sys.argv = ['alphagateau', 'trian']\n"
    code += "threading.Thread(target=threading.Event().wait).start(); m.script()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2 and "train" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="of Linux")
def test_a_result_that_the_disk_has_no_room_for_is_no_success():
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "alphagateau.commands.main", "rate", "--help"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "No space left on device" in done.stderr and done.stderr.count("\n") == 1
