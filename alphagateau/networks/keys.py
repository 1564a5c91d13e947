"""What keys that networks of several architectures have say of themselves."""

ARCHITECTURE = "graphs: gateau; CNN: alphazero; chessformer, token_transformer; giraffe, giraffe_moves"
VALUE_HEADS = "the value is of one number, of win, draw and loss, or of bins of the chance of winning"
ACTION_VALUES = "a head that values every legal move at once, for losses on labelled positions"
REMATERIALIZE = "training keeps what enters a block, and computes the rest again"
NUM_BINS = "bins of a value and of an action value (1: a number, for l2 losses)"
REPLY_HEAD = "a head that learns the opponent's reply from self-play"
MOVES_LEFT_HEAD = "a head that learns the plies to the end of the game from self-play"

# What no network comes near to, so that a file that asks for more is refused before its layers are built.
MOST_FEATURES = 65_536
MOST_BLOCKS = 128
MOST_HEADS = 1024
MOST_BINS = 65_536
