"""Are legal moves learnt where they are not given? python benchmarks/learnt_legality.py LABELS --iterations 4

Trains `experiments/labelled_chess.toml` at a smaller size twice, on equal boards: the best move among the legal ones,
as it does, and among all moves of the board, legal or not, as Ruoss et al. (2024) do. Prints of the held-out boards
the share whose first move, of all, is legal, the probability of the legal moves, and the share whose first legal move
is the labelled one. The loss comes in by `alphagateau.register`, as a plug-in's would.
"""

import argparse
import tempfile
from functools import partial

import jax
import jax.numpy as jnp

import alphagateau
from alphagateau.config.losses import Loss
from alphagateau.games.actions import legal_edge_mask, slots_to_edges
from alphagateau.training.losses.terms import LossTerms

SMALL = {
    "network.hidden_size": 64,
    "network.num_blocks": 4,
    "network.ffn_size": 96,
    "search": {"algorithm": "policy"},
    "data.frames_per_iteration": 32_768,
    "data.temperature": 0.0,
    "training.learning_rate": 0.006,
    "checkpoint_every": 1000,
    "aim": False,
    "evaluation.num_games": 0,
}


def cloning_terms(is_given: bool, game, evaluation, frames) -> LossTerms:
    """Cross-entropy to the labelled move, nats, over the legal moves or over all, and what is known of legality [B]."""
    legal = legal_edge_mask(game, frames.position)
    target = slots_to_edges(legal, frames.policy_target.astype(jnp.float32))
    every, given = evaluation.prior_logits, jnp.where(legal, evaluation.prior_logits, -1e9)
    log_policy = jax.nn.log_softmax(given if is_given else every, axis=-1)
    known = target.any(axis=-1)
    first = jnp.argmax(given, axis=-1)[:, None]
    logged = {
        "first_is_legal": (jnp.take_along_axis(legal, jnp.argmax(every, axis=-1)[:, None], axis=-1)[:, 0], known),
        "probability_of_legal": ((jax.nn.softmax(every, axis=-1) * legal).sum(axis=-1), known),
        "first_legal_is_best": (jnp.take_along_axis(target, first, axis=-1)[:, 0] >= target.max(axis=-1), known),
    }
    loss = -jnp.sum(jnp.where(target > 0, target * log_policy, 0.0), axis=-1)
    return LossTerms({"policy_loss": jnp.where(known, loss, 0.0)}, logged_among=logged)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels")
    parser.add_argument("--iterations", type=int, default=4, help="of 32 768 boards")
    parser.add_argument("--runs", help="folder of the two runs; a temporary one")
    args = parser.parse_args()
    print(
        "| legal moves | first of all moves is legal | probability of legal moves | first legal move is the label's |"
    )
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, is_given in (("given", True), ("learnt", False)):
            loss = f"cloning_{name}"
            terms, needs = partial(cloning_terms, is_given), {"policy_head": (True,)}
            alphagateau.register(Loss(loss, terms, ("policy",), needs, labels=("best", "actions")))
            changes = SMALL | {"data.path": args.labels, "num_iterations": args.iterations, "training.loss": loss}
            run = alphagateau.train("experiments/labelled_chess.toml", name, runs=args.runs or folder, changes=changes)
            found = run.metrics[-1]
            shares = (found[f"test/{x}"] for x in ("first_is_legal", "probability_of_legal", "first_legal_is_best"))
            print(f"| {name} | " + " | ".join(f"{x:.4f}" for x in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
