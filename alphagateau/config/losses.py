"""Registers of losses and of auxiliary heads, each declared where its terms are computed; this module names none."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from alphagateau.config.registers import NetworkConfig, Register

Terms = Callable[[Any, Any, Any], Any]  # (Game, Evaluation, Frames [B]) -> `training.losses.terms.LossTerms`


@dataclass(frozen=True)
class Loss:
    """A loss that `training.loss` names."""

    name: str
    terms: Terms
    teaches: tuple[Literal["policy", "value", "action_value"], ...]  # the outputs that it trains
    needs: Mapping[str, Collection[Any]] = field(default_factory=dict)  # keys of [network], the values they may have
    labels: tuple[str, ...] = ()  # targets of `alphagateau label` that hold all it learns from
    shards: tuple[str, ...] = ()  # the same of published shards, each of which has labels of one kind
    learns_from_games: bool = True  # whether the frames of self-play hold all it learns from
    has_heads: bool = False  # whether it adds the terms of the network's auxiliary heads
    meaning: Mapping[str, str] = field(default_factory=dict)  # of metrics such as "train/policy_loss", for reports


@dataclass(frozen=True)
class Head:
    """An auxiliary head: an output that is learnt beside policy and value, and read by no search."""

    name: str  # its target's in `Frame.extra`; one that ends in `_edge` holds edges, which mirrors turn
    key: str  # the switch of [network] that adds it
    output: str  # its name in `Evaluation.extra`
    terms: Terms
    target: Callable[[Any], Any] | None = None  # Trajectory [T, B] -> Array [T, B]; None: each frame has what it needs
    meaning: Mapping[str, str] = field(default_factory=dict)  # of its metrics by name, for reports


LOSSES = Register(Loss, "loss")
HEADS = Register(Head, "head")


def heads_of(network: NetworkConfig) -> tuple[Head, ...]:
    """The auxiliary heads of a network; an architecture without a head's key has not the head."""
    return tuple(head for head in HEADS.values() if getattr(network, head.key, False))


def declared_meaning() -> dict[str, str]:
    """The meaning of metrics by name, as losses and heads declare it."""
    entries = [*LOSSES.values(), *HEADS.values()]
    return {name: text for entry in entries for name, text in entry.meaning.items()}
