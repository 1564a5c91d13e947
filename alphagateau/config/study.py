"""Keys of a study file: an experiment, its variants, their seeds, a budget for all, the ladder that rates them."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from alphagateau.config.ladder import LadderConfig
from alphagateau.config.records import MAX_INT, ConfigError, choice, key, names, num, record, section, show, suggestion

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")  # of a study and a variant: they become folders
OF_A_VARIANT = ("experiment", "init_from", "budget")  # keys of a variant besides those of its experiment
SET_BY_STUDY = {"seed": "[seeds]", "evaluation.num_games": "[ladder]"}


@record
class BudgetConfig:
    """The end of a run, with the first iteration that reaches any of these; 0: no such limit."""

    iterations: int = num("iterations", default=0)
    frames: int = num("positions played by self-play", default=0)
    steps: int = num("optimizer steps", default=0)
    flops: float = num("operations of the networks' matrix products, playing and learning", default=0.0)
    seconds: float = num("seconds of the run's phases: what metrics.jsonl has under time/, less compile", default=0.0)

    @model_validator(mode="after")
    def _check_together(self) -> "BudgetConfig":
        if not any(vars(self).values()):
            raise ValueError(f"a budget must name at least one of {', '.join(vars(self))}")
        return self


@record
class PilotConfig:
    """Scatter and costs by which `--plan` reckons. What an earlier study measured takes the place of these numbers."""

    study: str = key("the folder of an earlier study's results, such as eval/quickstart_networks", default="")
    seed_sd: float = num("standard deviation of equal runs of different seeds, Elo", default=42.0)
    game_sd: float = num("error of a run's rating by its games, Elo (0: of a simulated ladder)", default=0.0)
    run_seconds: float = num("core-seconds of a run, if its budget has no seconds", default=200.0)
    game_seconds: float = num("core-seconds of a game", default=0.4)
    cores: int = num("that a run keeps busy", default=1, low=1)


@record
class StudyConfig:
    """Everything that decides a study. Paths are relative to the working folder."""

    name: str = key("what its folders are called (none: as its file)", default="")
    base: str = key("the experiment that variants change: a file, or the name of one that comes with the package")
    design: Literal["variants", "factorial"] = choice("variants, or levels of [factors]", default="variants")
    seeds: tuple[int, ...] = names("each variant is run with each", default=(0,))
    reference: str = key("the variant against which the others are measured (none: the first)", default="")
    piece: int = num("iterations of a run before the next one has its turn (0: all of them)", default=0)
    metrics: tuple[str, ...] = names("of metrics.jsonl, whose last values are compared too", default=())
    player: str = key("how the runs play on the ladder, as search=policy (none: as in training)", default="")
    last: int = num("checkpoints of a run, its last ones, whose mean rating is the run's", default=1, low=1)
    direct_games: int = num("games of each run against the reference's run of its seed, an even number", default=0)
    budget: BudgetConfig = section()
    changes: dict[str, Any] = section(default={})  # keys of the experiment, changed in all variants
    variants: dict[str, dict[str, Any]] = section(default={})
    factors: dict[str, list[Any]] = section(default={})  # of a factorial design: two values of a key, or two tables
    ladder: LadderConfig | None = section(default=None)
    pilot: PilotConfig = section(default=PilotConfig())

    @field_validator("seeds", mode="before")
    @classmethod
    def _check_seeds(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple) or not value or not all(type(seed) is int for seed in value):
            raise ValueError(f"seeds must be an array of at least one integer, got {show(value)}")
        if len(set(value)) < len(value) or not all(0 <= seed <= MAX_INT for seed in value):
            raise ValueError(f"seeds must be different integers from 0 to {MAX_INT}, got {list(value)}")
        return value

    @field_validator("budget", "ladder", "pilot", mode="before")
    @classmethod
    def _check_section(cls, value: Any, info: ValidationInfo) -> Any:
        return _read_section(str(info.field_name), value)

    @field_validator("changes", "variants", mode="before")
    @classmethod
    def _check_tables(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"[{info.field_name}] must be a table of keys, got {show(value)}")
        if info.field_name == "changes":
            if own := [key for key in OF_A_VARIANT if key in value]:
                raise ValueError(f"changes: {own[0]} is a variant's key, and no experiment's")
            return _check_changes("changes", value)
        if not value:
            raise ValueError("variants must name at least one, as in [variants.base]")
        return {name: _check_variant(name, variant, value) for name, variant in value.items()}

    @field_validator("factors", mode="before")
    @classmethod
    def _check_factors(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"[factors] must be a table of keys, got {show(value)}")
        changed: set[str] = set()
        for name, levels in (found := _check_changes("factors", dotted(value))).items():
            if not isinstance(levels, list) or len(levels) != 2 or levels[0] == levels[1]:
                raise ValueError(f"factors.{name} must be an array of two different values, got {show(levels)}")
            tables = [_check_changes(f"factors.{name}", level) for level in levels if isinstance(level, Mapping)]
            if own := [key for key in OF_A_VARIANT if key == name or any(key in table for table in tables)]:
                raise ValueError(f"factors.{name}: {own[0]} is no key of an experiment, which alone go together")
            if len(tables) == 1:
                raise ValueError(f"factors.{name} must be two values or two tables of keys, got one of each")
            keys = {key for table in tables for key in dotted(table)} or {name}
            if twice := changed & keys:
                raise ValueError(f"factors.{name} changes {min(twice)}, as another factor does")
            changed |= keys
        return found

    @model_validator(mode="after")
    def _check_together(self) -> "StudyConfig":
        if self.design == "variants" and not self.variants:
            raise ValueError("missing key variants")
        if (self.design == "factorial") != bool(self.factors) or (self.factors and self.variants):
            raise ValueError('design = "factorial" has [factors] in the place of [variants]; no other design has them')
        if self.factors and (self.reference or self.direct_games):
            raise ValueError('design = "factorial" has no reference, and so no direct_games')
        if self.direct_games and self.ladder is None:
            raise ValueError("direct_games needs [ladder], which plays them")
        if self.direct_games % 2:
            raise ValueError("direct_games must be even, as each opening is played both ways")
        if self.name and not NAME.fullmatch(self.name):
            raise ValueError(f"name must be letters, digits, '.', '_' and '-', got {show(self.name)}")
        if self.reference and self.reference not in self.variants:
            raise ValueError(f"reference must be one of {', '.join(self.variants)}, got {show(self.reference)}")
        for name in self.variants:
            _check_chain(name, self.variants)
        return self


def parse_budget(text: str) -> BudgetConfig:
    """The budget of "steps=8000" or "frames=1e6,seconds=600". Raises ConfigError."""
    table: dict[str, Any] = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        if name in table:
            raise ConfigError(f"budget names {name} twice, the second time as {show(part)}")
        try:
            amount = float(number)
            is_whole = amount.is_integer() and name not in ("flops", "seconds")
            table[name] = int(amount) if is_whole else amount
        except (ValueError, OverflowError):
            raise ConfigError(f"budget {show(part)} must be a unit and a number, such as steps=8000") from None
    return BudgetConfig(**table)


def dotted(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Keys of nested tables by their dotted names, quoted or not. Raises ConfigError for one that is given twice."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        inner = dotted(value, f"{prefix}{name}.") if isinstance(value, Mapping) and value else {prefix + name: value}
        if twice := found.keys() & inner:
            raise ConfigError(f"{min(twice)} is given twice: in a table, and by its dotted name")
        found |= inner
    return found


def changes_of(variant: Mapping[str, Any]) -> dict[str, Any]:
    """The changed keys of a variant, by their dotted names."""
    return dotted({name: value for name, value in variant.items() if name not in OF_A_VARIANT})


def _read_section(name: str, value: Any) -> Any:
    """The record of a table of keys; what is none stays. Raises ValueError, which opens with the section."""
    kinds = {"budget": BudgetConfig, "ladder": LadderConfig, "pilot": PilotConfig}
    if not isinstance(value, Mapping):
        return value
    # Of a ladder: each run's last weights, and the random mover besides, whose games no pool counts.
    of_ladder: dict[str, Any] = {"players": () if value.get("pool") else ("random",), "every": MAX_INT}
    try:
        return kinds[name.rpartition(".")[2]](**{**(of_ladder if name == "ladder" else {}), **value})
    except ConfigError as error:
        raise ValueError(f"[{name}]: {error}") from None


def _check_changes(where: str, table: Mapping[str, Any]) -> dict[str, Any]:
    for name in dotted(table):
        if name in SET_BY_STUDY:
            raise ValueError(f"{where}: {name} is not a variant's to change, {SET_BY_STUDY[name]} of the study decides")
    return dict(table)


def _check_variant(name: str, variant: Any, variants: Mapping[str, Any]) -> dict[str, Any]:
    where = f"variants.{name}" if NAME.fullmatch(name) else f"variant {show(name)}"
    if not NAME.fullmatch(name):
        raise ValueError(f"{where}: its name must be letters, digits, '.', '_' and '-'")
    if not isinstance(variant, Mapping):
        raise ValueError(f"[{where}] must be a table of keys, got {show(variant)}")
    for word in ("experiment", "init_from"):
        if not isinstance(variant.get(word, ""), str):
            raise ValueError(f"{where}.{word} must be a text, got {show(variant[word])}")
    source = variant.get("init_from", "")
    if source and source not in variants and "/" not in source:
        hint = suggestion(source, variants) or "; expected another variant, or the path of a checkpoint or run"
        raise ValueError(f"{where}.init_from: no variant {show(source)}{hint}")
    made = _check_changes(where, variant)
    if "budget" in variant:
        made["budget"] = _read_section(f"{where}.budget", variant["budget"])
        if not isinstance(made["budget"], BudgetConfig):
            raise ValueError(f"[{where}.budget] must be a table of keys, got {show(variant['budget'])}")
    return made


def _check_chain(name: str, variants: Mapping[str, Mapping[str, Any]]) -> None:
    seen = [name]
    while (source := variants[seen[-1]].get("init_from", "")) in variants:
        if source in seen:
            raise ValueError(f"variants.{name}.init_from leads back to itself: {' -> '.join([*seen, source])}")
        seen.append(source)
