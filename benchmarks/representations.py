"""Values learnt from features, planes, squares, a graph: python benchmarks/representations.py LABELS --iterations 4

Six networks that were not tuned learn an engine's evaluation, values alone, from equal boards: of Giraffe's features
(Lai 2015, section 4.1, argues for them), planes, squares, a graph. Sizes differ: prints of each the parameters, FLOPs
forward, and the error of the value, in [-1, 1], on held-out boards.
"""

import argparse
import tempfile

import jax.numpy as jnp

import alphagateau
from alphagateau.config.losses import Loss
from alphagateau.training.flops import forward_flops
from alphagateau.training.losses.terms import value_terms

SQUARES = {"architecture": "chessformer", "hidden_size": 48, "num_blocks": 3, "num_heads": 3, "ffn_size": 72}
NETWORKS = {
    "features": {"architecture": "giraffe", "hidden_size": 64},
    "features, wider": {"architecture": "giraffe", "hidden_size": 256, "group_divisor": 3},
    "planes": {"architecture": "alphazero", "hidden_size": 24, "num_blocks": 3},
    "squares": SQUARES,
    "squares, attackers": SQUARES | {"attacks": True},
    "graph": {"architecture": "gateau", "hidden_size": 32, "num_blocks": 3, "normalization": "rms"},
}
LEARNT = {
    "game": "chess",
    "search": {"algorithm": "state_value"},
    "data": {"mate_value": "graded", "test_boards": 8192, "frames_per_iteration": 32_768},
    "training": {
        "loss": "value_alone",
        "batch_size": 256,
        "learning_rate": 0.002,
        "schedule": "cosine",
        "warmup_steps": 100,
        "average_decay": 0.99,
        "mirror": True,
    },
    "evaluation": {"num_games": 0},
    "aim": False,
    "checkpoint_every": 1000,
}
MEASURES = ("value_error", "value_loss", "value_accuracy")


def value_alone(game, evaluation, frames):
    """Squared error of the value."""
    return value_terms(evaluation, frames, jnp.square(evaluation.value - frames.value_target))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels")
    parser.add_argument("--iterations", type=int, default=4, help="of 32 768 boards")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--runs", help="folder of the runs; a temporary one")
    args = parser.parse_args()
    alphagateau.register(Loss("value_alone", value_alone, ("value",), labels=("actions", "best")))
    print("| a network of | seed | parameters | FLOPs a position | error | squared error | right sign |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, network in NETWORKS.items():
            for seed in range(args.seeds):
                others = {} if network["architecture"] == "giraffe" else {"history": False}
                experiment = LEARNT | {"network": network | others, "num_iterations": args.iterations, "seed": seed}
                experiment["data"] = LEARNT["data"] | {"path": args.labels}
                run_name = f"{name.replace(', ', '_')}-{seed}"
                run = alphagateau.train(experiment, run_name, runs=args.runs or folder)
                measures = " | ".join(f"{run.metrics[-1][f'test/{measure}']:.4f}" for measure in MEASURES)
                model = alphagateau.load(run.checkpoint)
                size = f"{model.manifest['parameters']:,} | {forward_flops(model.game, model.network):.1e}"
                print(f"| {name} | {seed} | {size} | {measures} |", flush=True)


if __name__ == "__main__":
    main()
