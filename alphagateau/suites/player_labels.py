"""Labels boards by the searches of a network's player."""

from collections.abc import Sequence

from alphagateau.data.labelling import Labeller
from alphagateau.data.workers import SearchResult
from alphagateau.games.rules import Game
from alphagateau.games.scores import centipawns
from alphagateau.matches.players import Player
from alphagateau.matches.specs import SpecError
from alphagateau.suites.answers import find_answers, positions_of_fens


def make_labeller(game: Game, player: Player) -> Labeller:
    """The Labeller of a player. Raises SpecError for one without a network."""
    if player.search is None or not player.variables:
        raise SpecError(f"player {player.name!r} has no network: expected a run or a checkpoint")

    def search(fens: Sequence[str]) -> list[SearchResult]:
        found = []
        for part in find_answers(game, player, positions_of_fens(game, fens, seed=0)):
            assert part.output
            scores = map(centipawns, part.output.search_value.tolist())
            found += [SearchResult(score, 0, move) for score, move in zip(scores, part.moves, strict=True)]
        return found

    about = {"name": player.name, "weights": player.identity.weights, "search": player.identity.search}
    return Labeller(about, search)
