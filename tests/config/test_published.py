"""The paper's experiments keep its settings, key by key, whatever the defaults become."""

from pathlib import Path

import pytest

from alphagateau import config

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
PUBLISHED = {
    "network.hidden_size": 128,
    "network.normalization": "batch",
    "network.value_head": "scalar",
    "network.reply_head": False,
    "network.moves_left_head": False,
    "network.history": True,
    "search.algorithm": "gumbel",
    "search.max_num_considered_actions": 16,
    "search.gumbel_scale": 1.0,
    "search.value_scale": 0.1,  # this, maxvisit_init and rescale_values: mctx's defaults
    "search.maxvisit_init": 50.0,
    "search.rescale_values": True,
    "search.average_mirrors": False,
    "selfplay.continue_games": False,
    "selfplay.full_search_share": 1.0,
    "selfplay.random_openings": 0.0,
    "selfplay.resign_plies": 0,
    "targets.kind": "result",
    "targets.wait_for_result": False,
    "targets.bootstrap": False,
    "targets.td_lambda": 1.0,
    "targets.search_value_weight": 0.0,
    "training.loss": "policy_value",
    "training.optimizer": "adam",
    "training.learning_rate": 0.001,
    "training.schedule": "constant",
    "training.warmup_steps": 0,
    "training.weight_decay": 0.0,
    "training.max_gradient_norm": 0.0,
    "training.average_decay": 0.0,
    "training.batch_size": 256,
    "training.num_epochs": 1,
    "training.samples_per_frame": 0.0,
    "training.mirror": False,
}
PAPER = {  # game, blocks, simulations, iterations, games, plies, window
    "learning_speed_alphagateau": ("chess", 5, 128, 500, 256, 512, 1_000_000),
    "learning_speed_alphazero": ("chess", 5, 128, 500, 256, 512, 1_000_000),
    "frame_window_256_none": ("chess", 5, 128, 100, 256, 512, 131_072),
    "frame_window_256_1m": ("chess", 5, 128, 100, 256, 512, 1_000_000),
    "frame_window_1024_131k": ("chess", 5, 128, 100, 1024, 512, 131_072),
    "pretrain_5x5": ("gardner_chess", 10, 128, 100, 1024, 256, 1_000_000),
    "finetune_8x8": ("chess", 10, 128, 100, 256, 512, 1_000_000),
    "finetune_8x8_8_blocks": ("chess", 8, 32, 440, 1024, 512, 1_000_000),
}
SIZES = (
    "game",
    "network.num_blocks",
    "search.num_simulations",
    "num_iterations",
    "selfplay.num_games",
    "selfplay.num_plies",
    "window.size",
)


@pytest.mark.parametrize("name", PAPER)
def test_the_paper_s_experiments_keep_its_settings_whatever_the_defaults_become(name):
    keys = config.flatten(config.load(EXPERIMENTS / f"{name}.toml"))
    assert {key: keys[key] for key in PUBLISHED} == PUBLISHED
    assert tuple(keys[key] for key in SIZES) == PAPER[name]
