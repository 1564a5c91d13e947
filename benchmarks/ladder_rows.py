"""Measures what share of the rows that a ladder's searches have belongs to live games.

    python benchmarks/ladder_rows.py [--players 6] [--games 180 360] [--seed 0]

Raw policies of untrained networks on 5x5, rounds of 20 games a pair, one after another and overlapping. Prints a
Markdown table.
"""

import argparse
import re
import tempfile
from pathlib import Path

import jax

from alphagateau.config import LadderConfig
from alphagateau.games.variants import get_game
from alphagateau.matches.ladder import rounds
from alphagateau.matches.ladder.meetings import open_openings
from alphagateau.matches.ladder.rounds import Callbacks, Table, play_rounds
from alphagateau.matches.players import Player
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.make_network import make_network
from alphagateau.search.baselines import make_policy_search
from alphagateau.search.config import PolicyConfig

GAME = "gardner_chess"


def make_players(count: int) -> list[Player]:
    game = get_game(GAME)
    network = make_network(game, GateauConfig(hidden_size=8, num_blocks=1))
    search = make_policy_search(game, network, PolicyConfig())
    made = [Player(f"p{k}", search, network.init(jax.random.key(k))) for k in range(count)]
    return [one._replace(key=(one.name, "policy", GAME)) for one in made]


def live_share(players: list[Player], num_games: int, seed: int, overlaps: bool) -> float:
    """Of all rows, in percent."""
    rounds.may_overlap = lambda ladder: overlaps
    ladder, game, said = LadderConfig(players=("p",), max_games=num_games), get_game(GAME), []
    with tempfile.TemporaryDirectory() as folder:
        table = Table(ladder, game, Path(folder), players, open_openings(game, "", 4, seed), "", [])
        play_rounds(table, [], Callbacks(said.append))
    shares = [float(found[1]) for found in (re.search(r"(\d+)% of the searched rows", line) for line in said) if found]
    return sum(shares) / len(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--players", type=int, default=6)
    parser.add_argument("--games", type=int, nargs="*", default=[180, 360])
    parser.add_argument("--seed", type=int, default=0, help="of the openings")
    options = parser.parse_args()
    players = make_players(options.players)
    print("| games | one round after another | overlapping |\n|---|---|---|")
    for num_games in options.games:
        shares = [live_share(players, num_games, options.seed, overlaps) for overlaps in (False, True)]
        print(f"| {num_games} | {shares[0]:.0f} % | {shares[1]:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
