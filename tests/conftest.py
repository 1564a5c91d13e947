"""What the test session shares: compiled programs kept on disk, a network told what to say, a tiny real one."""

import contextlib
import ctypes
import gc
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from hypothesis import HealthCheck, settings

from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Evaluation, Network, Variables

# Files that take longest, the longest first: several processes begin with them, so as to end together.
LONGEST = (
    "commands/test_study.py",
    "examples/test_minimal_alphazero.py",
    "distributed/test_devices.py",
    "commands/test_every_system.py",
    "distributed/test_processes.py",
    "training/test_loop.py",
    "runs/logging/test_log.py",
    "test_plugin.py",
    "api/test_library_players.py",
    "training/selfplay/test_several_boards.py",
    "runs/test_kill.py",
    "test_wheel.py",
    "training/losses/test_label_losses.py",
    "networks/test_networks.py",
    "games/test_games.py",
    "envs/test_pgx_env.py",
    "matches/ladder/test_ladder.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Programs compiled by one session, and by the processes it starts, are read back by the next.

    JAX_COMPILATION_CACHE_DIR moves them. Tests spend their time in compilation: without LLVM's costly optimizations
    they take four fifths of it.
    """
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "alphagateau" / "tests"
    cache = os.environ.get("JAX_COMPILATION_CACHE_DIR") or str(cache)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = cache
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")  # there are many small ones
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # `--dist loadfile` would begin with the files of most tests
    # The same examples on every machine, however busy it is; tests/fuzzing.py makes new ones.
    settings.register_profile(
        "repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def gardner() -> Game:
    return get_game("gardner_chess")


def _stub(game: Game) -> Network:
    def init(key) -> Variables:
        del key
        return {"prior_logits": jnp.zeros(game.num_edges), "material": jnp.float32(0)}

    def apply(variables, positions, train=False):
        batch = positions.color.shape[0]
        logits = jnp.broadcast_to(variables["prior_logits"], (batch, game.num_edges))
        codes = positions.boards[:, 0].astype(jnp.float32).sum(axis=-1)
        return Evaluation(logits, jnp.tanh(variables["material"] * codes)), {}

    return Network(init, apply)


@pytest.fixture(scope="session")
def stub_network() -> Callable[[Game], Network]:
    """A network of plain functions for a Game, which says of every position what its variables hold.

    `prior_logits` [E], or [B, E] for one row each; `material`: the value is tanh(material * (own - their codes)).
    As initialised it knows nothing: a uniform prior, and 0 for the value.
    """
    return _stub


class Tiny(NamedTuple):
    """A real network, small enough to compile in seconds."""

    network: Network
    variables: Variables


@pytest.fixture(scope="session")
def tiny(gardner: Game) -> Tiny:
    """GATEAU of one block, 8 features wide, on the 5x5 board."""
    network = make_network(gardner, GateauConfig(hidden_size=8, num_blocks=1))
    return Tiny(network, network.init(jax.random.key(0)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is marked `whole` is slow; several processes begin with the longest files, then those of most tests."""
    for item in items:
        if item.get_closest_marker("whole"):
            item.add_marker("slow")
    if hasattr(config, "workerinput"):
        ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST)}
        assert all(path.exists() for path in ranks), "LONGEST names a file that is not there"
        num_tests = Counter(item.path for item in items)
        items.sort(key=lambda item: (ranks.get(item.path, len(ranks)), -num_tests[item.path], item.path))


@pytest.fixture(scope="module", autouse=True)
def _programs_are_dropped():
    """Compiled programs go with the module that used them, and their memory: a session's take gigabytes."""
    yield
    jax.clear_caches()
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc alone
        ctypes.CDLL("libc.so.6").malloc_trim(0)
