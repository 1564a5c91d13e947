"""The rows of each group that `benchmarks/bench.py` names."""

from throughput import chessformer, data, games, minimax, networks, search

ROWS = {  # functions from the number of rounds to rows
    "games": games.game_rows,
    "network": networks.network_rows,
    "training": networks.training_rows,
    "selfplay": games.selfplay_rows,
    "search": search.search_rows,
    "minimax": minimax.minimax_rows,
    "compilation": networks.compilation_rows,
    "memory": games.memory_rows,
    "chessformer": chessformer.chessformer_rows,
    "data": data.data_rows,
}
