"""Declares the losses of the package and the auxiliary heads that they train."""

from collections.abc import Collection, Mapping
from typing import Any

from alphagateau.config.losses import Head, Loss
from alphagateau.config.records import MAX_INT
from alphagateau.config.registers import deferred

ROOM = "alphagateau.training.losses"
OF_GAMES, OF_LABELS, OF_HEADS = f"{ROOM}.policy_value", f"{ROOM}.label_losses", f"{ROOM}.auxiliary"
ALL_OUTPUTS = ("policy", "value", "action_value")
POLICY, BINS, ACTION_VALUES = {"policy_head": (True,)}, {"value_head": ("bins",)}, {"action_values": (True,)}
NUM_BINS: dict[str, Collection[int]] = {"hl_gauss": range(2, MAX_INT), "log": range(2, MAX_INT), "l2": (1,)}


def _on_games(name: str, *value_heads: str) -> Loss:
    """A loss of policy and value, on games or on labels that have both."""
    terms, needs = deferred(f"{OF_GAMES}:{name}_loss"), {"value_head": value_heads, **POLICY}
    return Loss(name, terms, ("policy", "value"), needs, labels=("actions", "best"), has_heads=True)


def _on_labels(family: str, needs: Mapping[str, Collection[Any]], **fields: Any) -> list[Loss]:
    """A family of losses on labels, one for each way to compare a value with its label."""
    return [
        Loss(
            f"{family}_{kind}",
            deferred(f"{OF_LABELS}:{family}_loss", kind),
            needs={**needs, "num_bins": num_bins},
            learns_from_games=False,
            **fields,
        )
        for kind, num_bins in NUM_BINS.items()
    ]


def _head(name: str, key: str, output: str, terms: str, *first: str, has_target: bool = True) -> Head:
    target = deferred(f"{OF_HEADS}:{name}") if has_target else None
    return Head(name, key, output, deferred(f"{OF_HEADS}:{terms}", *first), target)


BUILTIN_LOSSES = [
    _on_games("policy_value", "scalar", "bins"),  # win, draw and loss cannot be learnt from their mean alone
    _on_games("policy_value_l1", "scalar", "bins"),
    _on_games("policy_wdl", "wdl"),
    Loss(
        "behavioral_cloning",
        deferred(f"{OF_LABELS}:behavioral_cloning_loss"),
        teaches=("policy",),
        needs=POLICY,
        labels=("best", "actions"),
        shards=("best", "actions"),
    ),
    *_on_labels("action_value", ACTION_VALUES, teaches=("action_value",), labels=("actions",), shards=("actions",)),
    *_on_labels("state_value", BINS, teaches=("value",), labels=("states", "actions", "best"), shards=("states",)),
    *_on_labels("all_labels", BINS | ACTION_VALUES | POLICY, teaches=ALL_OUTPUTS, labels=("actions",)),
]
BUILTIN_HEADS = [
    _head("reply_edge", "reply_head", "reply_logits", "reply_terms"),
    _head("moves_left", "moves_left_head", "moves_left", "moves_left_terms"),
    _head("soft_policy", "soft_policy_head", "soft_logits", "soft_policy_terms", has_target=False),
    _head("search_value", "search_value_head", "search_value", "value_and_error_terms", "search_value"),
    _head("short_term", "short_term_head", "short_term", "value_and_error_terms", "short_term"),
]
