"""The networks and the searches that come with the package."""

from alphagateau.config.registers import NETWORKS, SEARCHES
from alphagateau.networks.alphazero.config import ALPHAZERO
from alphagateau.networks.chessformer.config import CHESSFORMER
from alphagateau.networks.gateau.config import GATEAU
from alphagateau.networks.giraffe.config import GIRAFFE, GIRAFFE_MOVES
from alphagateau.networks.tokens.config import TOKEN_TRANSFORMER
from alphagateau.search.config import ACTION_VALUE, POLICY, RANDOM, STATE_VALUE
from alphagateau.search.gumbel.config import GUMBEL
from alphagateau.search.minimax.config import DEPTH, PROBABILITY

for architecture in (GATEAU, ALPHAZERO, TOKEN_TRANSFORMER, CHESSFORMER, GIRAFFE, GIRAFFE_MOVES):
    NETWORKS.add(architecture)
for method in (GUMBEL, PROBABILITY, DEPTH, POLICY, ACTION_VALUE, STATE_VALUE, RANDOM):
    SEARCHES.add(method)
