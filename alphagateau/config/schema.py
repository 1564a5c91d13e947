"""Keys of an experiment, each declared once, with its help, unit, default and range.

Reading, checking, writing, `--help` and command-line options follow these records. A record that exists is valid, but
for names whose owners this package does not import: `training/checks.py` looks at the game and the loss.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from alphagateau.config.losses import LOSSES
from alphagateau.config.records import choice, entry, key, num, program_or_path, record, section, show
from alphagateau.config.registers import GAMES, NETWORKS, REGISTERS, SEARCHES, NetworkConfig, SearchConfig

MATERIAL_BATCH = 256  # positions a step of the lesson on material
SEEDS_APART = 2**16  # between those of a run's boards, whose games draw nothing alike


@record
class SelfPlayConfig:
    """The games from which an iteration learns."""

    num_games: int = num("games played side by side", low=1)
    num_plies: int = num("plies of each game slot in an iteration", low=1)
    continue_games: bool = key("games go on in the next iteration, not anew", default=False)
    segment_plies: int = num("plies a device call, after which stop signals are heard", default=16, low=1)
    full_search_share: float = num(
        "share of plies searched in full; the others train no policy", default=1.0, low=1e-6, high=1
    )
    cheap_simulations: int = num("search simulations of a ply not searched in full", default=16, low=1)
    random_openings: float = num("share of games that begin after random plies", default=0.0, high=1)
    opening_plies: int = num("random plies that open such a game, at most", default=4, low=1, high=64)
    starts: str = program_or_path(
        "file of FENs where games begin, one a line (none: the first position)", default="none"
    )
    boards: str = key("boards of a run, with parts of its games: chess 2, gardner_chess 1 (none: game)", default="none")
    start_moves: int = num("random moves from such a start before a game begins", default=1, high=64)
    resign_plies: int = num("own plies in a row below -resign_value to resign (0: never)", default=0, high=2**15 - 1)
    resign_value: float = num("search's value whose opposite is low enough to resign", default=0.9, high=1)
    resign_played_out: float = num("share of games in which nobody may resign", default=0.1, high=1)


@record
class DataConfig:
    """The labelled positions from which an iteration learns, in place of games."""

    path: str = program_or_path("folder of labels that `alphagateau label` wrote, or Bagz shards of ChessBench")
    record: Literal["board", "move"] = choice(
        "what a frame is: a board with all its labels, or one labelled move of a board", default="board"
    )
    frames_per_iteration: int = num("frames read for an iteration, in whole batches", default=65_536, low=1)
    sampler: Literal["uniform", "weighted"] = choice(
        "boards alike, or by how often they occurred in games", default="uniform"
    )
    temperature: float = num("of the policy target, softmax(q / temperature); 0: the best move alone", default=0.0)
    train_boards: int = num("boards to learn from, spread evenly over the labelled ones (0: all)", default=0)
    test_boards: int = num("held-out boards on which the loss is measured after an iteration (0: none)", default=0)
    mate_value: Literal["certain", "graded"] = choice(
        "q of a mate: 1, or by its k moves 1 - min(k, 20) / 500, so that players of values mate", default="certain"
    )


@record
class WindowConfig:
    """The frame window from which training draws its batches."""

    size: int = num("frames kept", default=1_000_000, low=1)
    keep: Literal["sample", "newest"] = choice(
        "old frames that stay beside the new ones: a uniform sample, as published, or the newest", default="sample"
    )


@record
class TargetsConfig:
    """The target of a frame's value, and when the frame may enter the window."""

    kind: Literal["result", "td_leaf"] = choice(
        "the game's result, or for the last position of a search's line what later searches say", default="result"
    )
    wait_for_result: bool = key("frames of a game that goes on wait for its result", default=False)
    bootstrap: bool = key(
        "a game without a result yet is worth what its last search says; else it trains no value", default=False
    )
    td_lambda: float = num("TD(lambda) over the search's values; 1: the game's result", default=1.0, high=1)
    search_value_weight: float = num("share of the search's own value in the target", default=0.0, high=1)
    learn_from: Literal["start", "all"] = choice("TD-Leaf: an iteration's first plies alone, or all", default="start")
    td_stride: int = num("TD-Leaf: plies between the values that are compared", default=1, low=1, high=2)
    score_decay: float = num("TD-Leaf: what a value loses of itself a ply, as a factor", default=1.0, high=1)
    max_error: float = num("TD-Leaf: the longest way from a value to its target (0: no limit)", default=0.0)
    root_policies: bool = key("TD-Leaf: searched positions train the policy too", default=False)


@record
class TrainingConfig:
    """Loss, optimizer, batches and schedule."""

    loss: str = entry("what is minimized, on frames of games or of labels", LOSSES, default="policy_value")
    batch_size: int = num("frames a step", default=256, low=1)
    optimizer: Literal["adam", "nadam", "muon", "adadelta"] = choice(
        "nadam: Adam with Nesterov's momentum; muon: steps made orthogonal; adadelta: as Giraffe", default="adam"
    )
    beta2: float = num("decay of the mean of squared gradients", default=0.999, high=0.999999)
    epsilon: float = num("what is added to the root of that mean", default=1e-8, low=1e-30, high=1)
    num_parts: int = num("parts of a batch whose gradients are summed, one after the other", default=1, low=1)
    num_epochs: int = num("passes over the window an iteration", default=1, low=1)
    samples_per_frame: float = num("times a new frame is drawn, to a whole step (0: by num_epochs)", default=0.0)
    learning_rate: float = num("step size, at its highest (Giraffe's AdaDelta: 1)", default=0.001, low=1e-9, high=1)
    adadelta_decay: float = num("of AdaDelta's averages, a step", default=0.99, high=1)
    adadelta_epsilon: float = num("of AdaDelta", default=1e-8, low=1e-30, high=1)
    schedule: Literal["constant", "linear", "cosine", "steps"] = choice(
        "how the step size falls; steps: by the root of 10 at 0.8 and 0.9 of decay_steps", default="constant"
    )
    warmup_steps: int = num("steps over which the step size rises from 0", default=0)
    decay_steps: int = num("steps after which it is lowest (0: those of the run)", default=0)
    min_learning_rate: float = num("step size at its lowest", default=0.0, high=1)
    weight_decay: float = num("decay of the weight matrices, times the step size (AdamW)", default=0.0, high=1)
    max_gradient_norm: float = num("longer gradients are cut to this global L2 norm (0: none)", default=0.0)
    average_decay: float = num("of the average of weights that plays, per step (0: the last play)", default=0.0, high=1)
    mirror: bool = key("half of the frames drawn are mirrored, files a to h", default=False)
    segment_steps: int = num("optimizer steps a device call", default=256, low=1)
    material_positions: int = num("positions from which new weights first learn to count material", default=0)


@record
class EvaluationConfig:
    """The match that ends a run."""

    num_games: int = num("games against each opponent (0: no match), an even number", default=128)
    num_simulations: int = num("search simulations a ply (0: as in self-play)", default=0)
    opening_plies: int = num("random plies that open each pair of games", default=4, high=64)
    average_mirrors: bool = key("as search.average_mirrors, in this match only", default=False)


@record
class RetentionConfig:
    """Which checkpoints stay on disk."""

    keep_newest: int = num("whole checkpoints kept, the newest ones", default=2, low=1)
    keep_every: int = num("every k-th iteration keeps its weights forever (0: no such rule)", default=0)
    weights: bool = key("every older checkpoint keeps its weights (no window, no optimizer)", default=True)


@record
class HealthConfig:
    """Limits of a healthy iteration. A loss or weight that is not finite always stops the run."""

    action: Literal["warn", "stop"] = choice("what an unhealthy iteration causes", default="warn")
    min_policy_entropy: float = num("mean entropy of the network's policy, nats", default=0.01)
    max_value_saturation: float = num("fraction of frames with |value| > 0.99", default=0.95, high=1)
    max_value_calibration_error: float = num("mean |predicted - observed| value", default=0.5, high=2)
    max_draw_rate: float = num("fraction of finished games, from 32 on", default=0.98, high=1)
    max_truncation_rate: float = num("fraction of them ended by length, from 32 on", default=0.9, high=1)
    max_false_resignations: float = num("of those who would have resigned, how many did not lose", default=0.25, high=1)
    max_duplicate_rate: float = num("fraction of games seen before, from 32 on", default=0.5, high=1)
    max_game_length: float = num("plies, mean of the finished games", default=450.0)
    min_game_length: float = num("plies, mean of the finished games", default=4.0)
    max_gradient_norm: float = num("global L2 norm", default=1e4)
    max_weight_norm: float = num("global L2 norm", default=1e4)
    min_value_known: float = num("fraction of the frames trained on whose value is known", default=0.1, high=1)
    max_target_noise: float = num("KL of the policy targets of two searches of a position, nats", default=3.0)
    max_mirror_value_gap: float = num("|value - value of the mirror image|, mean", default=0.5, high=2)
    max_frame_reuse: float = num("frames trained on for each new one", default=64.0)


@record
class Experiment:
    """Everything that decides a run. Raises ConfigError when made with an impossible value."""

    game: str = entry("board", GAMES)
    seed: int = num("seed of all randomness", default=0)
    num_iterations: int = num("iterations of self-play and training", low=1)
    checkpoint_every: int = num("iterations between checkpoints", default=1, low=1)
    sample_games: int = num("games saved as PGN an iteration", default=4)
    sample_roots: int = num("positions an iteration on which target noise and mirrors are measured", default=32)
    aim: bool = key("also log to Aim", default=True)
    platform: Literal["auto", "cpu", "gpu", "tpu"] = choice("device kind to run on", default="auto")
    cpu_devices: int = num("devices that a CPU counts as, which share its cores; one a core is fast", default=1, low=1)
    num_shares: int = num("shares of games, window and batches, for any devices", default=8, low=1)
    network: NetworkConfig = section(register=NETWORKS)
    search: SearchConfig = section(register=SEARCHES)
    selfplay: SelfPlayConfig | None = section(default=None)
    data: DataConfig | None = section(default=None)
    window: WindowConfig = section(default=WindowConfig())
    targets: TargetsConfig = section(default=TargetsConfig())
    training: TrainingConfig = section(default=TrainingConfig())
    evaluation: EvaluationConfig = section(default=EvaluationConfig())
    retention: RetentionConfig = section(default=RetentionConfig())
    health: HealthConfig = section(default=HealthConfig())

    @property
    def boards(self) -> tuple[str, ...]:
        """The boards of the run."""
        return tuple(part.game for part in board_experiments(self))

    @field_validator("network", "search", mode="before")
    @classmethod
    def _read_registered(cls, value: Any, info: ValidationInfo) -> Any:
        return REGISTERS[str(info.field_name)].read(value, cls) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _check_together(self) -> "Experiment":
        if (self.selfplay is None) == (self.data is None):
            raise ValueError("an experiment needs [selfplay] or [data], from which its frames come, and not both")
        if self.data is not None and self.network.history:
            raise ValueError("[data] needs network.history = false: labelled positions have no past")
        self._check_sizes()
        if self.selfplay is not None:
            self._check_playout_cap(self.selfplay)
        self._check_boards()
        if self.targets.wait_for_result and not (self.selfplay and self.selfplay.continue_games):
            raise ValueError("targets.wait_for_result needs selfplay.continue_games = true: no other game goes on")
        if self.targets.kind == "td_leaf":
            self._check_td_leaf()
        for name in ("num_simulations", "average_mirrors"):
            if getattr(self.evaluation, name) and name not in vars(self.search):
                raise ValueError(f"evaluation.{name} has no meaning for search.algorithm {show(self.search.algorithm)}")
        training = self.training
        if training.min_learning_rate > training.learning_rate:
            limit = f"{training.learning_rate:g}, training.learning_rate"
            raise ValueError(f"training.min_learning_rate ({training.min_learning_rate:g}) must be at most {limit}")
        is_falling = training.schedule != "constant" and training.decay_steps
        if is_falling and training.warmup_steps >= training.decay_steps:
            limit = f"{training.decay_steps}, training.decay_steps"
            raise ValueError(f"training.warmup_steps ({training.warmup_steps}) must be below {limit}")
        if training.weight_decay and training.optimizer == "adadelta":
            raise ValueError('training.weight_decay has no meaning for training.optimizer "adadelta"')
        if self.data is None and training.batch_size > self.window.size:
            limit = f"{self.window.size}, window.size"
            raise ValueError(f"training.batch_size ({training.batch_size}) must be at most {limit}")
        return self

    def _check_sizes(self) -> None:
        """Raises ValueError where shares, chunks, batches of labels and pairs do not come out even."""
        shares = self.num_shares, f"num_shares ({self.num_shares})"
        batch = self.training.batch_size, f"training.batch_size ({self.training.batch_size})"
        together, factors = shares
        if self.training.num_parts > 1:
            together *= self.training.num_parts
            factors += f" times training.num_parts ({self.training.num_parts})"
        if (ghost_size := self.network.statistics_batch) > 1:
            together *= ghost_size
            factors += f" times network.ghost_size ({ghost_size})"
            if self.training.material_positions and MATERIAL_BATCH % ghost_size:
                raise ValueError(f"network.ghost_size ({ghost_size}) must divide {MATERIAL_BATCH}, the lesson's batch")
        for name, size, (divisor, meaning) in (
            ("selfplay.num_games", self.selfplay.num_games if self.selfplay else 0, shares),
            ("window.size", self.window.size if self.selfplay else 0, shares),
            ("training.batch_size", self.training.batch_size, (together, factors)),
            ("data.frames_per_iteration", self.data.frames_per_iteration if self.data else 0, batch),
            ("evaluation.num_games", self.evaluation.num_games, (2, "2, as each opening is played with both colors")),
        ):
            below = size // divisor * divisor
            if size != below:
                sizes = f"{below} or {below + divisor}" if below else f"{divisor}"
                raise ValueError(f"{name} ({size}) must be divisible by {meaning}: use {sizes}")

    def _check_boards(self) -> None:
        """Raises ValueError if several boards cannot be played, or the network keeps statistics of others."""
        boards = self.boards
        kept = self.network.statistics_boards
        if unknown := {*kept} - GAMES.keys():
            raise ValueError(f"network.board_statistics names {show(min(unknown))}, expected {', '.join(GAMES)}")
        if kept and not set(boards) <= set(kept):
            raise ValueError(f"network.board_statistics must name {', '.join(boards)}, got {', '.join(kept)}")
        if self.game not in boards:
            raise ValueError(f"game ({self.game}) must be one of selfplay.boards, {', '.join(boards)}")
        if len(boards) == 1:
            return
        if not self.network.plays_every_board:
            raise ValueError(f"selfplay.boards needs a network of any board, got {show(self.network.architecture)}")
        if self.selfplay and self.selfplay.starts != "none":
            raise ValueError('selfplay.starts must be "none" with selfplay.boards: its positions are of one board')

    def _check_td_leaf(self) -> None:
        if self.selfplay is None:
            raise ValueError('targets.kind = "td_leaf" needs [selfplay]: labelled positions have no later searches')
        if not self.search.has_line:
            algorithm = show(self.search.algorithm)
            raise ValueError(f'search.algorithm must be "probability" or "depth" for TD-Leaf, got {algorithm}')
        for name in ("wait_for_result", "bootstrap", "search_value_weight"):
            if value := getattr(self.targets, name):
                raise ValueError(f"targets.{name} has no meaning for TD-Leaf, got {show(value)}")

    def _check_playout_cap(self, selfplay: SelfPlayConfig) -> None:
        if selfplay.full_search_share == 1:
            return
        if not self.search.num_simulations:
            raise ValueError('selfplay.full_search_share below 1 needs search.algorithm = "gumbel"')
        if selfplay.cheap_simulations >= self.search.num_simulations:
            limit = f"{self.search.num_simulations}, search.num_simulations"
            raise ValueError(f"selfplay.cheap_simulations ({selfplay.cheap_simulations}) must be below {limit}")


def board_experiments(experiment: Experiment) -> tuple[Experiment, ...]:
    """An Experiment a board of a run, with its part of games and window. Raises ValueError unless they divide."""
    selfplay = experiment.selfplay
    if selfplay is None or selfplay.boards == "none":
        return (experiment,)
    shares = enumerate(_parse_boards(selfplay.boards).items())
    return tuple(_of_board(experiment, selfplay, place, *share) for place, share in shares)


def _parse_boards(text: str) -> dict[str, float]:
    """Shares by board, of "gardner_chess 2, chess 1"."""
    found: dict[str, float] = {}
    for part in text.split(","):
        words = re.fullmatch(r"\s*(\w+) ([0-9]{0,6}\.?[0-9]{1,6})\s*", part)
        if not words or words[1] in found or not float(words[2]):
            expected = 'boards and their parts, such as "gardner_chess 2, chess 1"'
            raise ValueError(f"selfplay.boards must be {expected}, got {show(text)}")
        found[words[1]] = float(words[2])
    return {board: part / sum(found.values()) for board, part in found.items()}


def _of_board(whole: Experiment, selfplay: SelfPlayConfig, place: int, board: str, share: float) -> Experiment:
    games, shares = share * selfplay.num_games, whole.num_shares
    num_games = round(games)
    if abs(games - num_games) > 1e-6 or num_games % shares or not num_games:
        expected = f"expected a multiple of {shares}, num_shares"
        raise ValueError(f"selfplay.boards gives {board} {games:g} of {selfplay.num_games} games, {expected}")
    size = int(share * whole.window.size) // shares * shares
    if size < whole.training.batch_size:
        limit = f"{size}, the part of window.size that selfplay.boards gives {board}"
        raise ValueError(f"training.batch_size ({whole.training.batch_size}) must be at most {limit}")
    return dataclasses.replace(
        whole,
        game=board,
        seed=(whole.seed + place * SEEDS_APART) % 2**31,
        selfplay=dataclasses.replace(selfplay, boards="none", num_games=num_games),
        window=dataclasses.replace(whole.window, size=size),
    )
