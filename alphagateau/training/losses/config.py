"""Declares the losses of the package and the auxiliary heads that they train."""

from collections.abc import Collection
from typing import Any

from alphagateau.config.losses import Head, Loss
from alphagateau.config.records import MAX_INT
from alphagateau.config.registers import deferred

ROOM = "alphagateau.training.losses"
POLICY = {"policy_head": (True,)}
NUM_BINS: dict[str, Collection[int]] = {"hl_gauss": range(2, MAX_INT), "log": range(2, MAX_INT), "l2": (1,)}


def _of_games(name: str, *value_heads: str) -> Loss:
    """A loss of policy and value, on games or on labels with both."""
    terms, needs = deferred(f"{ROOM}.policy_value:{name}_loss"), {"value_head": value_heads, **POLICY}
    return Loss(name, terms, ("policy", "value"), needs, labels=("actions", "best"), has_heads=True)


def _of_labels(family: str, **fields: Any) -> list[Loss]:
    """The losses of a family on labels, one for each comparison of a value with its label."""
    terms, needs = f"{ROOM}.label_losses:{family}_loss", fields.pop("needs")
    return [
        Loss(
            f"{family}_{kind}",
            deferred(terms, kind),
            needs=needs | {"num_bins": num_bins},
            learns_from_games=False,
            **fields,
        )
        for kind, num_bins in NUM_BINS.items()
    ]


BUILTIN_LOSSES = [
    _of_games("policy_value", "scalar", "bins"),  # win, draw and loss cannot be learnt from their mean alone
    _of_games("policy_value_l1", "scalar", "bins"),
    _of_games("policy_wdl", "wdl"),
    Loss(
        "behavioral_cloning",
        deferred(f"{ROOM}.label_losses:behavioral_cloning_loss"),
        teaches=("policy",),
        needs=POLICY,
        labels=("best", "actions"),
        shards=("best", "actions"),
    ),
    *_of_labels(
        "action_value",
        teaches=("action_value",),
        needs={"action_values": (True,)},
        labels=("actions",),
        shards=("actions",),
    ),
    *_of_labels(
        "state_value",
        teaches=("value",),
        needs={"value_head": ("bins",)},
        labels=("states", "actions", "best"),
        shards=("states",),
    ),
    *_of_labels(
        "all_labels",
        teaches=("policy", "value", "action_value"),
        needs={"value_head": ("bins",), "action_values": (True,), **POLICY},
        labels=("actions",),
    ),
]


def _head(name: str, key: str, output: str, terms: str, *first: str, target: str = "") -> Head:
    room = f"{ROOM}.auxiliary"
    return Head(
        name, key, output, deferred(f"{room}:{terms}", *first), deferred(f"{room}:{target}") if target else None
    )


BUILTIN_HEADS = [
    _head("reply_edge", "reply_head", "reply_logits", "reply_terms", target="reply_edge"),
    _head("moves_left", "moves_left_head", "moves_left", "moves_left_terms", target="moves_left"),
    _head("soft_policy", "soft_policy_head", "soft_logits", "soft_policy_terms"),
    _head(
        "search_value",
        "search_value_head",
        "search_value",
        "value_and_error_terms",
        "search_value",
        target="search_value",
    ),
    _head("short_term", "short_term_head", "short_term", "value_and_error_terms", "short_term", target="short_term"),
]
