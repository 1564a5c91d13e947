"""What a player's spec asks for: the search and its options, and what is said of those that cannot be."""

import hashlib
from collections import Counter

import pytest
from tiny_checkpoints import save_tiny

from alphagateau.commands import match
from alphagateau.config import SearchConfig
from alphagateau.config.searches import describe_search
from alphagateau.games.variants import get_endless_game, get_game
from alphagateau.matches import specs as specs_module
from alphagateau.matches.player_specs import load_player, search_of
from alphagateau.matches.specs import PlayerError, parse_spec, read_spec
from alphagateau.networks import trained
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.giraffe.config import GiraffeConfig, GiraffeMovesConfig
from alphagateau.networks.make_network import make_network
from alphagateau.networks.trained import load_weights
from alphagateau.runs.checkpoint import CheckpointError
from alphagateau.search.config import ActionValueConfig, PolicyConfig, StateValueConfig
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.minimax.config import DepthConfig, ProbabilityConfig

# As a checkpoint's manifest has it.
TRAINED = {"algorithm": "gumbel", "num_simulations": 32, "max_num_considered_actions": 8}


@pytest.mark.parametrize(
    ("options", "config", "shown"),
    [
        ("", GumbelConfig(num_simulations=32, max_num_considered_actions=8, gumbel_scale=0.0), "32 simulations, 8"),
        (
            "?simulations=4&considered=3&gumbel_scale=0.5",
            GumbelConfig(num_simulations=4, max_num_considered_actions=3, gumbel_scale=0.5),
            "gumbel 4 simulations, 3 considered, 0.5 gumbel_scale",
        ),
        (
            "?search=gumbel&num_simulations=5",
            GumbelConfig(num_simulations=5, max_num_considered_actions=8, gumbel_scale=0.0),
            "gumbel 5 simulations, 8 considered",
        ),
        ("?search=policy", PolicyConfig(), "policy"),
        ("?simulations=0", PolicyConfig(), "policy"),
        ("?simulations=0&considered=3&mirrors=true", PolicyConfig(average_mirrors=True), "policy mirrors"),
        (
            "?mirrors=true",
            GumbelConfig(num_simulations=32, max_num_considered_actions=8, gumbel_scale=0.0, average_mirrors=True),
            "gumbel 32 simulations, 8 considered, mirrors",
        ),
        (
            "?search=probability&nodes=500&split=uniform&quiescence=0",
            ProbabilityConfig(num_nodes=500, split="uniform", quiescence_plies=0),
            "probability 500 nodes, uniform split, 0 quiescence",
        ),
        (
            "?search=probability&split=runs/moves",
            ProbabilityConfig(split="runs/moves"),
            "probability 256 nodes, runs/moves split",
        ),
        ("?search=depth&plies=3", DepthConfig(depth=3), "depth 3 plies, 4096 nodes"),
        ("?search=depth&simulations=0", DepthConfig(), "depth 2 plies, 4096 nodes"),
        (
            "?value_scale=0.5&maxvisit_init=50&rescale_values=false",
            GumbelConfig(
                num_simulations=32,
                max_num_considered_actions=8,
                gumbel_scale=0.0,
                value_scale=0.5,
                rescale_values=False,
            ),
            "gumbel 32 simulations, 8 considered, 0.5 value_scale, no rescale_values",
        ),
        ("?search=action_value", ActionValueConfig(), "action_value"),
        ("?search=state_value&mirrors=true", StateValueConfig(average_mirrors=True), "state_value mirrors"),
        (
            "?search=action_value&endings=repetition&temperature=0.005&temperature_plies=6",
            ActionValueConfig(endings="repetition", temperature=0.005, temperature_plies=6),
            "action_value repetition endings, 0.005 temperature, 6 temperature_plies",
        ),
    ],
)
def test_search_of_a_spec(options: str, config: SearchConfig, shown: str) -> None:
    spec = f"runs/a{options}"
    assert search_of(parse_spec(spec), TRAINED) == config
    assert shown in describe_search(config)


def test_a_manifest_may_name_the_search_and_its_noise_is_for_training() -> None:
    assert search_of(parse_spec("runs/a"), {"algorithm": "policy", "num_simulations": 32}) == PolicyConfig()
    assert search_of(parse_spec("runs/a"), TRAINED, num_simulations=0) == PolicyConfig()
    assert search_of(parse_spec("runs/a?simulations=4"), TRAINED, num_simulations=0).num_simulations == 4
    assert search_of(parse_spec("runs/a"), {"algorithm": "gumbel", "gumbel_scale": 1.0}) == GumbelConfig(
        gumbel_scale=0.0
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("?search=mcts", "search is 'mcts', expected one of gumbel, probability, depth, policy, action_value, state"),
        ("?simulation=4", "'simulation' is no option of search gumbel, expected search, simulations, considered"),
        ("?search=policy&simulations=4", "'simulations' is no option of search policy, expected search"),
        ("?simulations=0&consider=3", "'consider' is no option of search gumbel, expected search, simulations, "),
        ("?simulations=4&num_simulations=8", "expected an option once, by its long or its short name"),
        ("?simulations=many", 'num_simulations must be an integer from 1 to 65536, got "many"'),
        ("?mirrors=1", 'average_mirrors must be true or false, got "1"'),
        ("?search=action_value&endings=all", 'endings must be one of "exact", "repetition", "none", got "all"'),
        ("?search=probability&nodes=1", "num_nodes must be an integer from 2 to 1000000, got 1"),
        ("?gumbel_scale=-1", "gumbel_scale must be a finite number from 0 to 1000, got -1.0"),
        ("?simulations", "'simulations' was given, expected options such as nodes=50, each once"),
        ("?simulations=4&simulations=5", "'simulations=5' was given, expected options such as nodes=50, each once"),
    ],
)
def test_search_that_cannot_be_is_one_sentence(options: str, message: str) -> None:
    spec = f"runs/a{options}"
    with pytest.raises(PlayerError) as error:
        search_of(parse_spec(spec), TRAINED)
    assert message in str(error.value) and repr(spec) in str(error.value) and "\n" not in str(error.value)


def test_a_manifest_may_name_a_search_of_a_later_version() -> None:
    with pytest.raises(PlayerError, match="search is 'minimax', expected one of gumbel, probability, depth, policy"):
        search_of(parse_spec("runs/a"), {"algorithm": "minimax"})


def test_the_random_mover_has_no_options() -> None:
    with pytest.raises(PlayerError, match="the random mover has no options"):
        load_player(read_spec("random?simulations=4"), "gardner_chess")


@pytest.mark.whole
def test_a_player_is_named_by_the_weights_that_split_its_search(tmp_path) -> None:
    """Not by their path; a network of another board, or none at all, is refused in a sentence."""
    valued = save_tiny(tmp_path / "a", "gardner_chess", GiraffeConfig)
    moves = save_tiny(tmp_path / "moves", "gardner_chess", GiraffeMovesConfig)
    spec = f"{valued.path}?search=probability&nodes=30&split="
    named = load_player(read_spec(spec + str(moves.path)), "gardner_chess")
    assert named.key[1] == f"probability 30 nodes, {moves.manifest['weights_hash']} split"
    other = save_tiny(tmp_path / "b", "los_alamos_chess", GiraffeMovesConfig)
    with pytest.raises(CheckpointError, match=r"the weights of its giraffe\w* have the size of los_alamos_chess"):
        load_player(read_spec(spec + str(other.path)), "gardner_chess")
    with pytest.raises(CheckpointError, match="even holds no whole checkpoint: no such run or checkpoint"):
        load_player(read_spec(spec + "even"), "gardner_chess")


def test_the_network_that_splits_a_search_counts_plies_as_it_learnt(tmp_path, monkeypatch):
    """Under a GUI, whose games end nowhere, a GATEAU was told ply / 32 767."""
    found, limits = save_tiny(tmp_path, "gardner_chess", AlphaZeroConfig), []

    def make(game, config):
        limits.append(game.max_plies)
        return make_network(game, config)

    monkeypatch.setattr(trained, "make_network", make)
    trained.load_policy(found.path, get_endless_game("gardner_chess"), is_mirrored=False)
    assert set(limits) == {get_game("gardner_chess").max_plies} != {get_endless_game("gardner_chess").max_plies}


def test_a_temperature_is_noise_where_moves_are_drawn_by_it(tmp_path):
    """A minimax plays its best move; its games were counted again as games of new openings."""
    found = save_tiny(tmp_path, "gardner_chess", AlphaZeroConfig)
    for search, has_noise in (("policy", True), ("probability", False)):
        spec = f"{found.path}?search={search}&temperature=0.5"
        assert load_player(read_spec(spec), "gardner_chess").has_noise == has_noise


def test_giraffe_plays_no_other_board(tmp_path) -> None:
    found = save_tiny(tmp_path, "gardner_chess", GiraffeConfig)
    load_weights(found, "gardner_chess")
    with pytest.raises(CheckpointError, match="/0 does not play chess: the weights of its giraffe have the size"):
        load_weights(found, "chess")


def test_a_match_hashes_each_weights_file_once(tmp_path, monkeypatch):
    """A run's newest checkpoint was looked for twice and hashed three times."""
    found = [save_tiny(tmp_path / name / "checkpoints", "gardner_chess", AlphaZeroConfig) for name in ("one", "two")]
    specs = [f"{tmp_path / 'one'}?search=policy", f"{found[1].path}?search=policy"]  # a run and a checkpoint
    files = {str(one.path / file) for one in found for file in one.manifest["files"]}
    hashed, looked_for = Counter(), Counter()
    digest, find_newest = hashlib.file_digest, specs_module.newest_checkpoint

    def count_digest(file, kind):
        hashed[str(file.name)] += 1
        return digest(file, kind)

    def count_newest(path, others):
        looked_for[str(path)] += 1
        return find_newest(path, others)

    monkeypatch.setattr(hashlib, "file_digest", count_digest)
    monkeypatch.setattr(specs_module, "newest_checkpoint", count_newest)
    match.read(match.Arguments(*specs, games=2))
    assert set(hashed) == files and set(hashed.values()) == {1}
    assert looked_for == Counter(spec.partition("?")[0] for spec in specs)


def test_a_spec_without_a_player_is_read_and_refused_where_it_is_loaded(tmp_path):
    for text, said in (
        (f"{tmp_path}/none", "holds no whole checkpoint"),
        ("random?x", "'x' was given, expected options"),
    ):
        spec = read_spec(text)
        assert spec.checkpoint is None
        with pytest.raises((PlayerError, CheckpointError), match=said):
            load_player(spec, "gardner_chess")
