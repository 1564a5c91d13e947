"""Registers the boards, networks, searches, losses and heads of the package, then those of plug-ins."""

from alphagateau.config.registers import Register, load_plugins
from alphagateau.games.entries import CHESS, CHESS960, GARDNER, LOS_ALAMOS
from alphagateau.networks.alphazero.config import ALPHAZERO
from alphagateau.networks.chessformer.config import CHESSFORMER
from alphagateau.networks.gateau.config import GATEAU
from alphagateau.networks.giraffe.config import GIRAFFE, GIRAFFE_MOVES
from alphagateau.networks.tokens.config import TOKEN_TRANSFORMER
from alphagateau.search.config import ACTION_VALUE, POLICY, RANDOM, STATE_VALUE
from alphagateau.search.gumbel.config import GUMBEL
from alphagateau.search.minimax.config import DEPTH, PROBABILITY
from alphagateau.training.losses.config import BUILTIN_HEADS, BUILTIN_LOSSES

OF_THE_PACKAGE = (
    *(CHESS, GARDNER, LOS_ALAMOS, CHESS960),
    *(GATEAU, ALPHAZERO, TOKEN_TRANSFORMER, CHESSFORMER, GIRAFFE, GIRAFFE_MOVES),
    *(GUMBEL, PROBABILITY, DEPTH, POLICY, ACTION_VALUE, STATE_VALUE, RANDOM),
    *(*BUILTIN_LOSSES, *BUILTIN_HEADS),
)
for entry in OF_THE_PACKAGE:
    Register.by_kind[type(entry)].add(entry)
load_plugins()
