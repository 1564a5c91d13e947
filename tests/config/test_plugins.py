"""Boards, networks and searches from outside the package: by `register`, and by entry points."""

import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import alphagateau
from alphagateau import config
from alphagateau.config import registers
from alphagateau.config.losses import Head, Loss, heads_of
from alphagateau.config.records import ConfigError, key, names, num, program_or_path, record
from alphagateau.config.registers import (
    NETWORKS,
    SEARCHES,
    Architecture,
    NetworkConfig,
    NotInstalledError,
    Register,
    SearchConfig,
    SearchMethod,
)
from alphagateau.config.searches import describe_search
from alphagateau.games.entries import CHESS, ROOK, GameEntry
from alphagateau.games.notation import edges_by_uci, from_fen, legal_moves
from alphagateau.games.pgn.pgn import read_pgn, record_game, to_pgn
from alphagateau.games.variants import get_game
from alphagateau.matches.player_specs import match_search, search_of
from alphagateau.matches.specs import parse_spec
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Evaluation, Network
from alphagateau.play.opponents import player_of
from alphagateau.play.uci.text import options, read_option
from alphagateau.runs.checkpoint import Checkpoint
from alphagateau.runs.manifest import check_manifest
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.make_search import make_search
from alphagateau.search.search import SearchOutput
from alphagateau.training.checks import check_experiment


@record
class ToyNetworkConfig(NetworkConfig):
    architecture: str = key("", default="toy_network")
    value: float = num("", default=0.5, high=1)
    toy_head: bool = key("", default=True)
    table: str = program_or_path("", default="")


@record
class ToySearchConfig(SearchConfig):
    algorithm: str = key("", default="toy_search")
    slot: int = num("", default=0)
    book: str = program_or_path("", default="")


WEIGHTS = {"params": {"scale": jnp.ones(1)}}


def make_toy_network(game, config) -> Network:
    def apply(variables, positions, train=False, axis_name=None):
        rows = positions.boards.shape[0]
        extra = {"toy": jnp.zeros(rows)}
        return Evaluation(jnp.zeros((rows, game.num_edges)), jnp.full(rows, config.value), extra), {}

    return Network(lambda key: WEIGHTS, apply)


def make_toy_search(game, network, config, tie_break):
    def search(variables, keys, states) -> SearchOutput:
        value = network.apply(variables, jax.vmap(game.position)(states))[0].value
        zeros = jnp.zeros(states.legal_edges.shape)
        return SearchOutput(states.legal_edges[:, config.slot], zeros, zeros, value, value)

    return search


TOY_BOARD = GameEntry(
    name="toy_chess",
    size=4,
    start_fen="kr2/p3/3P/2RK w - - 0 1",
    max_legal_moves=40,
    max_plies=20,
    variant_names=("Toy",),
    uci_variant="toy",
    under_promotions=(ROOK,),
)
TOY_NETWORK = Architecture("toy_network", ToyNetworkConfig, make_toy_network)
TOY_SEARCH = SearchMethod("toy_search", ToySearchConfig, make_toy_search)
TOY_LOSS = Loss("toy_loss", lambda game, evaluation, frames: None, teaches=("policy",), has_heads=True)
TOY_HEAD = Head("toy_target", "toy_head", "toy", lambda game, evaluation, frames: None)
EXPERIMENT = {
    "game": "toy_chess",
    "num_iterations": 1,
    "network": {"architecture": "toy_network", "value": 0.25},
    "search": {"algorithm": "toy_search", "slot": 1},
    "selfplay": {"num_games": 8, "num_plies": 4},
    "training": {"loss": "toy_loss"},
}


@pytest.fixture
def clean_registers():
    """What a test registers is removed after it."""
    before = [(register, dict(zip(register, register.values(), strict=True))) for register in Register.by_kind.values()]
    yield
    for register, entries in before:
        register._entries = entries
        register._origins = {name: origin for name, origin in register._origins.items() if name in entries}


@pytest.fixture
def toys(clean_registers):
    for toy in (TOY_BOARD, TOY_NETWORK, TOY_SEARCH, TOY_LOSS, TOY_HEAD):
        alphagateau.register(toy)


def test_a_record_of_each_kind_is_all_that_an_experiment_needs(toys):
    experiment = config.from_dict(EXPERIMENT)
    assert config.from_dict(tomllib.loads(config.dumps(experiment))) == experiment
    check_experiment(experiment)
    assert heads_of(experiment.network) == (TOY_HEAD,)
    game = get_game(experiment.game)
    network = make_network(game, experiment.network)
    search = make_search(game, network, experiment.search)
    states = jax.tree.map(lambda x: jnp.asarray(x)[None], game.init())
    output = search(network.init(None), jax.random.split(jax.random.key(0), 1), states)
    assert float(output.value[0]) == 0.25 and output.edge[0] == states.legal_edges[0, 1]


def test_a_text_in_place_of_a_tuple_is_refused(clean_registers):
    for changed in ({"teaches": "policy"}, {"labels": "best"}, {"needs": {"value_head": "wdl"}}):
        with pytest.raises(ConfigError, match=r"(teaches|labels|value_head) of .toy_loss.* must be a tuple, got"):
            alphagateau.register(replace(TOY_LOSS, **changed))
    with pytest.raises(ConfigError, match=r"variant_names of .toy_chess"):
        alphagateau.register(replace(TOY_BOARD, variant_names="Toy"))


def test_a_board_with_more_moves_than_it_declares_ends_with_its_first_game(clean_registers):
    names = {"name": "narrow_chess", "variant_names": ("Narrow",), "uci_variant": "narrow"}
    alphagateau.register(replace(TOY_BOARD, max_legal_moves=7, **names))
    white, black = (edges_by_uci("narrow_chess", is_white) for is_white in (True, False))
    edges = [white["d2d3"], black["b4c4"], white["d1d2"]]
    game = get_game("narrow_chess")
    assert len(record_game(game, edges[:2]).moves) == 2
    with pytest.raises(ConfigError, match=r"max_legal_moves of narrow_chess is 7: k1r1.* has 10"):
        record_game(game, edges)


def test_a_board_is_read_and_written_as_any_other(toys):
    game = get_game("toy_chess")
    moves = legal_moves(game, from_fen(game, "k3/2P1/4/K3 w - - 0 1"))
    assert {uci for uci in moves if uci.startswith("c3")} == {"c3c4q", "c3c4r"}
    played = record_game(game, [legal_moves(game, game.init())["d2d3"]])
    text = to_pgn(played)
    assert '[Variant "Toy"]' in text and read_pgn(text)[0].game == "toy_chess"
    assert "toy" in options()["UCI_Variant"].choices and read_option(" name UCI_Variant value toy")[1] == "toy"


def test_a_player_is_asked_for_by_the_search_and_plays_its_moves(toys):
    assert search_of(parse_spec("run?search=toy_search&slot=2"), {"algorithm": "gumbel"}).slot == 2
    found = Checkpoint(Path("run"), {"search": {"algorithm": "toy_search", "slot": 3}})
    assert player_of(found).search == ToySearchConfig(slot=3)


def test_errors_name_what_is_registered(toys):
    with pytest.raises(config.ConfigError, match=r'must be one of "gateau", .*"toy_network", got "toy_networks"'):
        NETWORKS.read({"architecture": "toy_networks"})
    with pytest.raises(ValueError, match="unknown game 'toys_chess', did you mean 'toy_chess'"):
        get_game("toys_chess")


def test_a_checkpoint_chooses_no_program_and_no_path_of_a_plug_in(toys):
    """Neither by its search nor by its network."""
    manifest = {
        **{"schema": 1, "iteration": 0, "parameters": 0, "optimizer_steps": 0, "order": [0, 0, 0]},
        **{"game": "toy_chess", "weights_hash": "0", "progress": {}, "symptoms": [], "parts": [], "files": {}},
        "network": {"architecture": "toy_network", "value": 0.25, "table": "/etc/passwd"},
        "search": {"algorithm": "toy_search", "slot": 1, "book": "sh -c true"},
    }
    known, left_out = check_manifest(manifest)
    assert left_out == ["network.table", "search.book"]
    assert known["network"] == {"architecture": "toy_network", "value": 0.25}
    assert known["search"] == {"algorithm": "toy_search", "slot": 1}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"game": "toys"},
            'game is "toys", expected game to be one of chess, .*, the boards of this version and its plug-ins',
        ),
        (
            {"network": {"architecture": "toys"}},
            r'architecture must be one of .*, got "toys" \(a plug-in that adds another must be installed\)',
        ),
        ({"search": {"algorithm": "toys"}}, "algorithm must be one of"),
    ],
)
def test_a_checkpoint_of_a_plug_in_that_is_missing_is_refused_with_what_is_known(changes, said):
    manifest = {
        **{"schema": 1, "iteration": 0, "parameters": 0, "optimizer_steps": 0, "order": [0, 0, 0]},
        **{"game": "chess", "weights_hash": "0", "progress": {}, "symptoms": [], "parts": [], "files": {}},
        **{"network": {}, "search": {}, **changes},
    }
    with pytest.raises(NotInstalledError, match=said):
        check_manifest(manifest)


def _evaluate(rows, game, **changes):
    outputs = {"prior_logits": jnp.zeros((rows, game.num_edges)), "value": jnp.zeros(rows), "extra": {"toy": 0}}
    return Evaluation(**{**outputs, **changes})


@pytest.mark.parametrize(
    ("apply", "said"),
    [
        (
            lambda rows, game: _evaluate(rows, game),
            r"apply must be \(Evaluation, statistics\), the latter a dict, got Evaluation",
        ),
        (
            lambda rows, game: (_evaluate(rows, game, prior_logits=jnp.zeros((rows, 16))), {}),
            r"prior_logits must be float32\[2, \d+\], got float32\[2, 16\] for two positions",
        ),
        (
            lambda rows, game: (_evaluate(rows, game, value=jnp.zeros((rows, 1))), {}),
            r"value must be float32\[2\], got float32\[2, 1\] for two positions",
        ),
        (
            lambda rows, game: (_evaluate(rows, game), None),
            r"apply must be \(Evaluation, statistics\), the latter a dict, got Evaluation, NoneType",
        ),
        (
            lambda rows, game: (_evaluate(rows, game, extra={}), {}),
            "extra must be the outputs of its heads, toy, got none",
        ),
        (
            lambda rows, game: (_evaluate(rows, game, extra=None), {}),
            "extra must be a mapping from names to outputs, got NoneType",
        ),
        (
            lambda rows, game: (_evaluate(rows, game), {"batch_stats": {"mean": jnp.zeros(2)}}),
            r"statistics must be those of init, none, got batch_stats\.mean",
        ),
    ],
)
def test_a_network_that_makes_something_else_is_refused_in_one_sentence(toys, apply, said):
    """Where its first use would end in a traceback from within the package, or a head would not be learnt."""

    def make(game, config) -> Network:
        return Network(lambda key: WEIGHTS, lambda v, positions, *_: apply(positions.boards.shape[0], game))

    NETWORKS._entries["toy_network"] = Architecture("toy_network", ToyNetworkConfig, make)
    with pytest.raises(config.ConfigError, match=f'architecture "toy_network": {said}'):
        make_network(get_game("toy_chess"), ToyNetworkConfig())


def _zeros(variables, positions, train=False, axis_name=None):
    return _evaluate(positions.boards.shape[0], get_game("toy_chess")), {}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            (lambda key: WEIGHTS, _zeros),
            "make must be a function that returns a Network, got one ",
        ),
        (
            Network(lambda key: jnp.zeros(2), _zeros),
            "init must be a function that returns a dict with params",
        ),
        (
            Network(lambda key: {"params": {}}, _zeros),
            "params must be arrays of floats, got none",
        ),
        (
            Network(lambda key: {"params": {"scale": jnp.ones(1), "counts": jnp.ones(1, jnp.int32)}}, _zeros),
            "params must be arrays of floats, got float32, int32",
        ),
        (
            Network(lambda key: WEIGHTS, lambda variables, positions: _zeros(variables, positions)),
            "apply must be a function of variables, positions, whether to train and an axis, got one with too many pos",
        ),
        (
            Network(lambda key: WEIGHTS, lambda variables, positions, train=False: _zeros(variables, positions)),
            "apply must be a function of variables, positions, whether to train and an axis, got one with too many pos",
        ),
    ],
)
def test_a_network_of_other_functions_is_refused_in_one_sentence(toys, made, said):
    NETWORKS._entries["toy_network"] = Architecture("toy_network", ToyNetworkConfig, lambda game, config: made)
    with pytest.raises(config.ConfigError, match=f'architecture "toy_network": {said}'):
        make_network(get_game("toy_chess"), ToyNetworkConfig())


def test_a_plug_ins_check_of_its_keys_is_one_sentence(toys):
    """It was a traceback, as a wrong value of a key of the package's own is not."""

    def make(*given):
        raise ValueError("value must be odd")

    NETWORKS._entries["toy_network"] = Architecture("toy_network", ToyNetworkConfig, make)
    SEARCHES._entries["toy_search"] = SearchMethod("toy_search", ToySearchConfig, make)
    game, network = get_game("toy_chess"), make_network(get_game("chess"), NETWORKS.read({}))
    with pytest.raises(config.ConfigError, match=r'^architecture "toy_network": value must be odd$'):
        make_network(game, ToyNetworkConfig())
    with pytest.raises(config.ConfigError, match=r'^algorithm "toy_search": value must be odd$'):
        make_search(game, network, ToySearchConfig())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"edge": jnp.zeros(2, jnp.int32)}, r"edge must be int16\[2\], got int32\[2\] for two games"),
        ({"action_weights": jnp.zeros((2, 39))}, r"action_weights must be float32\[2, 40\], got float32\[2, 39\]"),
        ({"search_value": jnp.zeros((2, 1))}, r"search_value must be float32\[2\], got float32\[2, 1\]"),
    ],
)
def test_a_search_that_makes_something_else_is_refused_in_one_sentence(toys, changes, said):
    def make(*given):
        return lambda *inputs: make_toy_search(*given)(*inputs)._replace(**changes)

    SEARCHES._entries["toy_search"] = SearchMethod("toy_search", ToySearchConfig, make)
    game = get_game("toy_chess")
    with pytest.raises(config.ConfigError, match=f'search "toy_search": {said}'):
        make_search(game, make_network(game, ToyNetworkConfig()), ToySearchConfig())


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, ": make must be a function that returns a Search, got NoneType"),
        (lambda *inputs: inputs, " must return a SearchOutput, got tuple"),
    ],
)
def test_a_search_of_other_functions_is_refused_in_one_sentence(toys, made, said):
    SEARCHES._entries["toy_search"] = SearchMethod("toy_search", ToySearchConfig, lambda *given: made)
    game = get_game("toy_chess")
    with pytest.raises(config.ConfigError, match=f'search "toy_search"{said}'):
        make_search(game, make_network(game, ToyNetworkConfig()), ToySearchConfig())


@pytest.mark.parametrize("kind", [ToySearchConfig, NetworkConfig])
def test_a_record_of_keys_names_what_it_is_registered_as(toys, kind):
    with pytest.raises(
        config.ConfigError, match=r'"other", of register.., must be a @record of NetworkConfig whose key arch'
    ):
        alphagateau.register(Architecture("other", kind, make_toy_network))


def test_the_keys_of_a_network_are_a_network_config(toys):
    @record
    class Keys:
        architecture: str = key("", default="other")

    with pytest.raises(config.ConfigError, match=r'"other", of register.., must be a @record of NetworkConfig'):
        alphagateau.register(Architecture("other", Keys, make_toy_network))  # type: ignore[arg-type]


def test_a_cell_of_a_notebook_can_be_run_again(toys):
    for make in (make_toy_network, _zeros):
        alphagateau.register(Architecture("toy_network", ToyNetworkConfig, make))
    assert NETWORKS["toy_network"].make is _zeros
    with pytest.raises(ConfigError, match=r'game "toy_chess" is registered twice, .*: rename one'):
        alphagateau.register(replace(TOY_BOARD, max_plies=30))  # games of the old board would go on by the new name


@pytest.mark.parametrize("place", ["nowhere_at_all:make", "json:dumpz"])
def test_a_record_that_defers_to_nothing_says_so_in_one_sentence(place):
    with pytest.raises(config.ConfigError, match=f'"{place}", which a record defers to, is not there: '):
        registers.deferred(place)()


def test_two_of_one_name_are_an_error_that_names_both(toys, monkeypatch):
    alphagateau.register(TOY_BOARD)  # the same record again is no second one
    with pytest.raises(config.ConfigError, match=r'algorithm "gumbel" is registered twice, by alphagateau and by reg'):
        alphagateau.register(SearchMethod("gumbel", GumbelConfig, make_toy_search))


def test_a_plug_in_that_takes_a_name_is_left_out_whole(clean_registers, monkeypatch, capsys):
    """And what it prints is no part of a command's output."""
    give(monkeypatch, "theirs = (CHESS,)", "theirs = (TOY_SEARCH,)")
    theirs = TOY_BOARD, GameEntry(**{**vars(CHESS), "max_plies": 7})
    monkeypatch.setattr(sys.modules["given_plugin"], "theirs", theirs)
    monkeypatch.setattr(EntryPoint, "load", lambda point: print("hello") or sys.modules[point.module].theirs)
    registers.load_plugins()
    out, err = capsys.readouterr()
    assert not out and err.count("hello") == 2
    assert 'ConfigError: game "chess" is registered twice, by alphagateau and by given_plugin' in err
    assert registers.plugins() == ["given_plugin_more:theirs"] and "toy_chess" not in registers.GAMES


def test_two_boards_of_one_uci_variant_are_refused(toys):
    """As the UCI engine would play one of them by the name of the other."""
    other = GameEntry(**{**vars(TOY_BOARD), "name": "other"})
    with pytest.raises(config.ConfigError, match=r'game "toy" is registered twice, by register\(\) and by'):
        alphagateau.register(other)


def test_two_boards_of_one_variant_of_pgn_are_refused(toys):
    """Games of the second were replayed on the first."""
    other = replace(TOY_BOARD, name="other", uci_variant="other", variant_names=("Other", "gardner CHESS"))
    with pytest.raises(config.ConfigError, match='game "gardnerchess" is registered twice, by alphagateau and by'):
        alphagateau.register(other)
    with pytest.raises(config.ConfigError, match="'toy_chess': variant_names must have one or more"):
        replace(TOY_BOARD, variant_names=())


def test_a_search_that_is_registered_again_plays(toys):
    """The one before played on, in matches and for search_position."""
    asked = "toy_chess", ToyNetworkConfig(), ToySearchConfig()
    first = match_search(*asked)
    assert match_search(*asked) is first
    alphagateau.register(replace(TOY_SEARCH, make=lambda *given: make_toy_search(*given)))
    assert match_search(*asked) is not first


def test_a_search_must_allow_what_matches_play_it_with(toys):
    """It was trained, and then no match could be played."""

    @record
    class Hot(SearchConfig):
        algorithm: str = key("", default="hot")
        temperature: float = num("of its moves", default=1.0, low=0.001)

    with pytest.raises(config.ConfigError, match=r'"hot", of .* fails with defaults and no noise: temperature'):
        alphagateau.register(SearchMethod("hot", Hot, make_toy_search))


def test_the_defaults_of_a_plug_ins_keys_must_be_in_their_ranges(toys):
    """Such a default was said as a user's mistake, by each command; a key without one, as a noisy search."""

    @record
    class Keys(NetworkConfig):
        architecture: str = key("", default="other")
        width: int = num("", default=7, low=8)

    with pytest.raises(config.ConfigError, match=r'"other", of register.., fails with defaults .*: width must'):
        alphagateau.register(Architecture("other", Keys, make_toy_network))

    @record
    class Asks(SearchConfig):
        algorithm: str = key("", default="asks")
        temperature: float = num("", default=1.0)
        num_visits: int = num("")

    alphagateau.register(SearchMethod("asks", Asks, make_toy_search))
    with pytest.raises(config.ConfigError, match=r"missing key search\.num_visits"):
        registers.SEARCHES.read({"algorithm": "asks"}, Asks)


def test_a_search_with_an_array_of_names_is_described():
    """It was a TypeError, in every match."""

    @record
    class Words(SearchConfig):
        algorithm: str = key("", default="words")
        told: tuple[str, ...] = names("what it is told", default=("a",))

    assert describe_search(Words(told=("a", "b"))) == "words a,b told" and describe_search(Words()) == "words"


def test_only_declarations_are_registered():
    with pytest.raises(
        config.ConfigError, match="a table is no declaration: expected one of Architecture, SearchMethod"
    ):
        alphagateau.register({})


def give(monkeypatch, *sources: str) -> None:
    """Entry points as installed distributions have them, of modules of these sources."""
    points = []
    for number, source in enumerate(sources):
        name = "given_plugin" + "_more" * number
        module = type(sys)(name)
        module.__dict__.update(globals())
        monkeypatch.setitem(sys.modules, name, module)
        exec(source, module.__dict__)
        points.append(EntryPoint(name, f"{name}:theirs", registers.PLUGINS))
    monkeypatch.setattr(registers, "entry_points", lambda group: points)


def test_a_plug_in_that_fails_is_one_sentence_and_the_others_work(clean_registers, monkeypatch, capsys):
    give(monkeypatch, "ours = 1", "theirs = (TOY_SEARCH,)", "theirs = (1,)")
    registers.load_plugins()
    first, last = capsys.readouterr().err.splitlines()
    assert (
        first.startswith("alphagateau: the plug-in given_plugin:theirs is left out, as ") and "AttributeError" in first
    )
    assert "given_plugin_more_more:theirs is left out" in last and "1 is no declaration" in last
    assert SEARCHES["toy_search"] is TOY_SEARCH and registers.plugins() == ["given_plugin_more:theirs"]


@pytest.mark.parametrize(("line", "said"), [("x = Losss", "NameError: "), ("x = = 1", "SyntaxError: ")])
def test_where_a_plug_in_fails_is_said(clean_registers, monkeypatch, capsys, tmp_path, line, said):
    (tmp_path / "broken_plugin.py").write_text(f"import json\n{line}\n")
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("broken", "broken_plugin:RECORDS", registers.PLUGINS)
    monkeypatch.setattr(registers, "entry_points", lambda group: [point])
    registers.load_plugins()
    err = capsys.readouterr().err
    assert said in err and err.endswith(f"({tmp_path / 'broken_plugin.py'}, line 2)\n")


def test_a_plug_in_that_ends_the_process_is_left_out(clean_registers, monkeypatch, capsys):
    give(monkeypatch, "def __getattr__(name): raise SystemExit('usage')")
    registers.load_plugins()
    assert "given_plugin:theirs is left out, as given_plugin:theirs fails with SystemExit" in capsys.readouterr().err


def test_no_module_reads_a_register_when_it_is_imported():
    """A plug-in may import any of them while the registers are being filled."""
    code = (
        "import importlib, pkgutil, sys, alphagateau\n"
        "for module in pkgutil.walk_packages(alphagateau.__path__, 'alphagateau.'):\n"
        "    if module.name != 'alphagateau.builtin':\n"
        "        importlib.import_module(module.name)\n"
        "        assert 'alphagateau.builtin' not in sys.modules, module.name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
