"""Registers the boards, networks, searches, losses and heads of the package, then those of plug-ins."""

from alphagateau.config.losses import HEADS, LOSSES
from alphagateau.config.registers import NETWORKS, SEARCHES, load_plugins
from alphagateau.games.entries import CHESS, CHESS960, GAMES, GARDNER, LOS_ALAMOS
from alphagateau.networks.alphazero.config import ALPHAZERO
from alphagateau.networks.chessformer.config import CHESSFORMER
from alphagateau.networks.gateau.config import GATEAU
from alphagateau.networks.giraffe.config import GIRAFFE, GIRAFFE_MOVES
from alphagateau.networks.tokens.config import TOKEN_TRANSFORMER
from alphagateau.search.config import ACTION_VALUE, POLICY, RANDOM, STATE_VALUE
from alphagateau.search.gumbel.config import GUMBEL
from alphagateau.search.minimax.config import DEPTH, PROBABILITY
from alphagateau.training.losses.config import BUILTIN_HEADS, BUILTIN_LOSSES

for board in (CHESS, GARDNER, LOS_ALAMOS, CHESS960):
    GAMES.add(board)
for architecture in (GATEAU, ALPHAZERO, TOKEN_TRANSFORMER, CHESSFORMER, GIRAFFE, GIRAFFE_MOVES):
    NETWORKS.add(architecture)
for method in (GUMBEL, PROBABILITY, DEPTH, POLICY, ACTION_VALUE, STATE_VALUE, RANDOM):
    SEARCHES.add(method)
for loss in BUILTIN_LOSSES:
    LOSSES.add(loss)
for head in BUILTIN_HEADS:
    HEADS.add(head)
load_plugins()
