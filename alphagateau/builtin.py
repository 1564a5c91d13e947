"""The networks, searches, losses and auxiliary heads that come with the package."""

from alphagateau.config.losses import HEADS, LOSSES
from alphagateau.config.registers import NETWORKS, SEARCHES
from alphagateau.networks.alphazero.config import ALPHAZERO
from alphagateau.networks.chessformer.config import CHESSFORMER
from alphagateau.networks.gateau.config import GATEAU
from alphagateau.networks.giraffe.config import GIRAFFE, GIRAFFE_MOVES
from alphagateau.networks.tokens.config import TOKEN_TRANSFORMER
from alphagateau.search.config import ACTION_VALUE, POLICY, RANDOM, STATE_VALUE
from alphagateau.search.gumbel.config import GUMBEL
from alphagateau.search.minimax.config import DEPTH, PROBABILITY
from alphagateau.training.losses.config import BUILTIN_HEADS, BUILTIN_LOSSES

for architecture in (GATEAU, ALPHAZERO, TOKEN_TRANSFORMER, CHESSFORMER, GIRAFFE, GIRAFFE_MOVES):
    NETWORKS.add(architecture)
for method in (GUMBEL, PROBABILITY, DEPTH, POLICY, ACTION_VALUE, STATE_VALUE, RANDOM):
    SEARCHES.add(method)
for loss in BUILTIN_LOSSES:
    LOSSES.add(loss)
for head in BUILTIN_HEADS:
    HEADS.add(head)
