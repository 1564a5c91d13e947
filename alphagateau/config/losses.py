"""Registers of losses and of auxiliary heads, each declared where its terms are computed; this module names none."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from alphagateau.config.registers import NetworkConfig, Register

Terms = Callable[[Any, Any, Any], Any]  # (Game, Evaluation, Frames [B]) -> LossTerms


@dataclass(frozen=True)
class Loss:
    """A loss that `training.loss` names.

    Attributes:
        terms: (Game, Evaluation, Frames [B]) -> `training.losses.terms.LossTerms`.
        teaches: the outputs that it trains.
        needs: keys of [network] and the values that they may have.
        labels: targets of `alphagateau label` that hold all it learns from.
        shards: the same of published shards, each of which has labels of one kind.
        learns_from_games: whether the frames of self-play hold all it learns from.
        has_heads: whether it adds the terms of the network's auxiliary heads.
        meaning: of its metrics by name, such as "train/policy_loss", for reports.
    """

    name: str
    terms: Terms
    teaches: tuple[Literal["policy", "value", "action_value"], ...]
    needs: Mapping[str, Collection[Any]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()
    learns_from_games: bool = True
    has_heads: bool = False
    meaning: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Head:
    """An auxiliary head: an output that is learnt beside policy and value, and read by no search.

    Attributes:
        name: its target's name in `Frame.extra`; one that ends in `_edge` holds edges, which mirrors turn.
        key: the switch of [network] that adds it.
        output: its name in `Evaluation.extra`.
        terms: (Game, Evaluation, Frames [B]) -> `training.losses.terms.LossTerms`.
        target: Trajectory [T, B] -> Array [T, B]; None: every frame has what it learns from.
        meaning: of its metrics by name, for reports.
    """

    name: str
    key: str
    output: str
    terms: Terms
    target: Callable[[Any], Any] | None = None
    meaning: Mapping[str, str] = field(default_factory=dict)


LOSSES = Register(Loss, "loss")
HEADS = Register(Head, "head")


def heads_of(network: NetworkConfig) -> tuple[Head, ...]:
    """The auxiliary heads of a network; an architecture without a head's key has not the head."""
    return tuple(head for head in HEADS.values() if getattr(network, head.key, False))


def declared_meaning() -> dict[str, str]:
    """The meaning of metrics by name, as losses and heads declare it."""
    entries = [*LOSSES.values(), *HEADS.values()]
    return {name: text for entry in entries for name, text in entry.meaning.items()}
