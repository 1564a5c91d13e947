"""What makes a start quick: compiled programs kept between commands, and garbage that waits."""

import gc
import os
from pathlib import Path


def use_compilation_cache() -> None:
    """JAX keeps compiled programs on disk, so a second start is quick; JAX_COMPILATION_CACHE_DIR moves it."""
    import jax

    if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "alphagateau" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # there are many small ones


def collect_rarely() -> None:
    """Garbage is collected less often: tracing makes objects that stay, and visiting them took a fifth of its time."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)
