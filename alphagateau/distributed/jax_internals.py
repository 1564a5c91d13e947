"""Names of JAX that have no public counterpart in 0.10 to 0.12; no other module imports private ones of it."""

from jax._src import distributed as distributed
from jax._src.clusters import ClusterEnv as ClusterEnv
