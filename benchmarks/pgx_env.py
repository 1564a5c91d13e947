"""A step of the pgx environments, with planes, against pgx's own, in turns in one process: python benchmarks/pgx_env.py

CPU time of a batch of games, each after random moves: --batch of them (1024), --rounds of both (15).
"""

import argparse
import time

import jax
import pgx
from throughput.games import make_step_call
from throughput.ratios import compare, in_turns, print_rows

import alphagateau

TARGETS = {"gardner_chess": 10.0, "chess": 5.0}  # times faster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    keys, rows = jax.random.split(jax.random.key(0), options.batch), []
    for name, target in TARGETS.items():
        envs = {"fast": alphagateau.make_env(name), "plain": pgx.make(name)}
        calls = {
            kind: make_step_call(
                jax.vmap(env.step),
                jax.jit(jax.vmap(env.init))(keys),
                lambda states: states.legal_action_mask,
                lambda _, action: action,
            )
            for kind, env in envs.items()
        }
        seconds = in_turns(calls, options.rounds, time.process_time)
        rows.append(
            compare(f"a step of {name} with planes, batch {options.batch}, CPU time, pgx / ours", seconds, target)
        )
    print_rows(rows)


if __name__ == "__main__":
    main()
