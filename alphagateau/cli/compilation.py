"""The cache of compiled programs, which makes a start quick."""

import os
from pathlib import Path


def use_compilation_cache() -> None:
    """Keeps compiled programs on disk, in the user's cache folder or in JAX_COMPILATION_CACHE_DIR."""
    import jax

    if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "alphagateau" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # there are many small ones
