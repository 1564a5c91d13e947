"""FLOPs of a forward pass against formulas by hand."""

from dataclasses import replace

from alphagateau import config
from alphagateau.games.variants import get_game
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.make_network import make_network
from alphagateau.networks.tokens.config import TokenTransformerConfig
from alphagateau.training.flops import experiment_flops, forward_flops


def test_convolutions_of_the_cnn_by_hand():
    """Every 3 x 3 convolution of K to K channels on 25 squares is 2 * 25 * 9 * K^2; the rest is small beside them."""
    game = get_game("gardner_chess")
    one, two = (forward_flops(game, make_network(game, AlphaZeroConfig(hidden_size=64, num_blocks=n))) for n in (1, 2))
    assert two - one == 2 * (2 * 25 * 9 * 64**2)


def test_layers_of_gateau_by_hand():
    """A layer: one K x K product an edge (W_e), five a node; and K products for the attention of each edge."""
    game, k = get_game("gardner_chess"), 32
    one, two = (forward_flops(game, make_network(game, GateauConfig(hidden_size=k, num_blocks=n))) for n in (1, 2))
    by_hand = 2 * 2 * k * k * (game.num_edges + 5 * game.num_squares)
    assert by_hand < two - one < 1.1 * by_hand


def test_fused_kernels_change_no_count():
    experiment = config.load(config.find_file("smoke", "experiment"))
    network = GateauConfig(hidden_size=16, num_blocks=1, normalization="rms")
    plain, fused = (replace(experiment, network=replace(network, kernel=name)) for name in ("xla", "fused"))
    assert experiment_flops(plain) == experiment_flops(fused)


def test_blocks_of_the_token_transformer_by_hand():
    """16 d^2 weights a token, of 40 in a FEN of 5x5 and its move; attention has two products with each other token."""
    game, tokens, d = get_game("gardner_chess"), 40, 32
    heads = {"policy_head": False, "value_head": "none", "action_values": True}
    sizes = [TokenTransformerConfig(hidden_size=d, num_blocks=n, **heads) for n in (2, 3)]
    two, three = (forward_flops(game, make_network(game, config)) for config in sizes)
    assert three - two == 2 * tokens * (16 * d**2 + 2 * tokens * d) + 2 * 2 * tokens * 2 * d
