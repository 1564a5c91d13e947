"""Reference pools: a ladder that makes one, and ladders whose newcomers it rates."""

import gzip
import json
from itertools import product

import pytest
from host_players import BOARD, host_player

from alphagateau.config import ConfigError, LadderConfig, make_record
from alphagateau.games.pgn.pgn import to_pgn
from alphagateau.matches.ladder import ladder as ladders
from alphagateau.matches.ladder.games import LadderGamesError, read_games
from alphagateau.matches.ladder.ladder import play_ladder
from alphagateau.matches.ladder.pairings import Standing, next_pairings
from alphagateau.matches.ladder.rounds import Callbacks
from alphagateau.ratings.results import Alike, make_results

PAWNS = ("1pppp", "p1ppp", "pp1pp", "ppp1p")
MEMBERS = [host_player(name) for name in "abcd"]
NEWCOMERS = [host_player(name) for name in ("new", "newer")]
OTHER_VERSION = host_player("engine 2")  # by the pool's specs, and no member


@pytest.fixture
def play(monkeypatch, tmp_path):
    """Plays a ladder of host players in a folder: its rated pool, and what it said. Members are of the pool's specs."""
    (tmp_path / "pool").mkdir()
    openings = tmp_path / "pool" / "openings.txt"
    openings.write_text("".join(f"rnbqk/{a}/5/{b.upper()}/RNBQK w - - 0 118\n" for a, b in product(PAWNS, PAWNS)))

    def run(folder: str, players, **keys):
        theirs = [p for p in players if "pool" in keys and p in (*MEMBERS, OTHER_VERSION)]
        ours = [p for p in players if p not in theirs]
        loaded = iter([theirs, ours] if "pool" in keys else [ours])
        run.options = []

        def load_players(_, *options):
            run.options.append(options)
            return next(loaded), []

        monkeypatch.setattr(ladders, "load_players", load_players)
        said: list[str] = []
        keys = {"boards": (BOARD,), "games_per_pair": 4, "rows": 8, **keys}
        ladder = LadderConfig(players=("host",), **keys)
        (pool,) = play_ladder(ladder, [], tmp_path / folder, Callbacks(said.append))
        return pool, said

    def make(openings=openings, **more):
        keys = {
            "matching": "all",
            "neighbours": 2,
            "games_per_pair": 12,
            "anchor": "b",
            "anchor_rating": 1000.0,
            "make_pool": True,
            **more,
        }
        return run("pool", MEMBERS, openings=str(openings), **keys)[0]

    run.make, run.folder = make, tmp_path / "pool"
    return run


@pytest.fixture
def specs_of_members(monkeypatch):
    """A file of host players names no program."""
    monkeypatch.setattr(ladders, "read_spec", lambda text: text)


def edit(path, **values) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "specs": ["random"], **values}))


def test_a_pool_is_its_ladders_ratings_and_covariance(play):
    made = play.make()
    text = json.loads((play.folder / "pool.json").read_text())
    assert [m["name"] for m in text["members"]] == list("abcd") and text["members"][1]["rating"] == 1000.0
    assert [m["rating"] for m in text["members"]] == pytest.approx(made.ratings.rating.tolist(), abs=0.01)
    assert text["covariance"] == [pytest.approx(row.tolist(), abs=0.01) for row in made.ratings.covariance]
    met = {frozenset((g.white[0], g.black[0])) for g in read_games(play.folder / "games.jsonl")}
    assert met == {frozenset(pair) for pair in ("ab", "ac", "bc", "bd", "cd")}  # not a and d, three places apart


def test_no_newcomer_has_the_name_of_a_member_that_is_not_here(play, specs_of_members):
    """As a network played by another search than that of the member, whose own may be missing or loaded later."""
    play.make()
    edit(play.folder / "pool.json")
    other = host_player("d")._replace(key=("d", "another search", BOARD))
    pool, _ = play("one", [other, host_player("d 2"), *MEMBERS[:3]], pool=str(play.folder))
    assert pool.ratings.players == (*"abcd", "d 2", "d 2 2")
    assert [p.name for p in pool.table.players] == [*"abc", "d 2", "d 2 2"]


def test_an_engine_of_another_version_than_the_members_does_not_play_unasked(play, specs_of_members):
    """It was a newcomer, which met the members before those that the ladder names."""
    play.make()
    edit(play.folder / "pool.json")
    pool, _ = play("one", [OTHER_VERSION, *MEMBERS, NEWCOMERS[0]], pool=str(play.folder))
    assert pool.ratings.players == (*"abcd", "new")
    asked = MEMBERS[0]._replace(name="my a")  # the ladder names a member, by its path perhaps
    pool, said = play("two", [*MEMBERS, asked, NEWCOMERS[0]], pool=str(play.folder))
    assert pool.ratings.players == (*"abcd", "new") and "my a is a, a member of the pool" in said


def test_a_pool_brings_its_board_and_its_openings(play, specs_of_members, tmp_path):
    """Engines alone said no board; openings of another folder were not there when the pool was used."""
    (own := tmp_path / "own.txt").write_bytes((play.folder / "openings.txt").read_bytes())
    (play.folder / "openings.txt").write_text("of a pool before")
    play.make(own)
    assert (play.folder / "openings.txt").read_bytes() == own.read_bytes()
    edit(play.folder / "pool.json")
    pool, _ = play("one", [*MEMBERS, NEWCOMERS[0]], pool=str(play.folder), boards=())
    assert pool.table.game.name == BOARD and pool.ratings.games[4]


def test_members_play_by_the_options_of_their_own_ladder(play, specs_of_members):
    """Others made other players of them, which nobody met."""
    play.make(simulations=64)
    edit(play.folder / "pool.json")
    play("one", [*MEMBERS, NEWCOMERS[0]], pool=str(play.folder), gumbel_scale=1.0)
    assert play.options == [(BOARD, 64, 0.0), (BOARD, None, 1.0)]


def test_games_between_members_count_for_the_pool_alone(play, specs_of_members):
    """Of a ladder that was played before it had the pool, or merged: they counted twice."""
    play.make()
    edit(play.folder / "pool.json")
    keys = {"pool": str(play.folder), "games_per_pair": 4}
    before, _ = play("one", [*MEMBERS, NEWCOMERS[0]], **keys)
    path = before.table.games_file
    path.write_text(path.read_text() + (play.folder / "games.jsonl").read_text())
    after, said = play("one", [*MEMBERS, NEWCOMERS[0]], **keys)
    assert "60 games between members of the pool: kept, not counted" in said
    assert after.ratings.rating.tolist() == before.ratings.rating.tolist()


def test_newcomers_are_rated_by_the_pool_whose_members_do_not_meet_again(play, specs_of_members):
    made = play.make()
    edit(play.folder / "pool.json")
    pool, _ = play("one", [*MEMBERS, *NEWCOMERS, host_player("random")], pool=str(play.folder))
    games = {row[:2]: sum(row[2:5]) for row in pool.results.rows if row.color == 1}
    assert pool.ratings.players == (*"abcd", "new", "newer", "random") and pool.protocol["reference pool"]
    assert games and not any({*pair} <= {*"abcd", "random"} for pair in games)
    assert all(pool.ratings.games[4:6] == [4 * 4 + 4] * 2)  # four members and the random mover, four games each
    assert pool.ratings.rating[1] == 1000.0 and pool.ratings.rating[:4] == pytest.approx(made.ratings.rating, abs=150)
    assert any(note.startswith("against random") for note in pool.ratings.notes)
    again, said = play("one", [*MEMBERS, *NEWCOMERS], pool=str(play.folder))
    assert not any("next" in line for line in said) and again.ratings.rating[4] == pool.ratings.rating[4]


def test_a_member_that_is_not_here_is_named_and_keeps_its_rating(play, specs_of_members):
    play.make()
    edit(play.folder / "pool.json")
    pool, said = play("one", [*MEMBERS[:3], NEWCOMERS[0]], pool=str(play.folder))
    assert "member d of the pool is not here: nobody meets it" in said
    assert pool.ratings.players == (*"abcd", "new") and pool.ratings.games[3] == 0
    assert pool.ratings.standard_error[3] > 0 and pool.ratings.games[4] == 12


def test_an_engine_that_plays_a_members_games_is_named(play, specs_of_members):
    """The newcomer moves as member d does; the games of d are those of the pool's PGN."""
    records = play.make().records
    edit(play.folder / "pool.json")
    (play.folder / "games.pgn.gz").write_bytes(gzip.compress("".join(map(to_pgn, records)).encode()))
    twin = MEMBERS[3]._replace(name="twin", key=("twin", "uci", BOARD))
    pool, _ = play("one", [*MEMBERS, twin], pool=str(play.folder), games_per_pair=12)
    assert pool.ratings.flags["twin"] == pool.ratings.flags["d"] == ("alike",)
    pool, _ = play("two", [*MEMBERS, NEWCOMERS[0]._replace(key=("new", "uci", BOARD))], pool=str(play.folder))
    assert not any("alike" in flags for flags in pool.ratings.flags.values())


def test_members_are_not_called_one_for_beating_a_newcomer_alike(play, specs_of_members, monkeypatch):
    """Strong levels play the same moves against the weak, and were shown to be different where the pool was made."""
    play.make()
    edit(play.folder / "pool.json")
    monkeypatch.setattr(ladders, "find_replays", lambda _: (Alike("a", "b", "same"), Alike("b", "new", "same")))
    pool, _ = play("one", [*MEMBERS, NEWCOMERS[0]], pool=str(play.folder))
    assert [name for name, flags in pool.ratings.flags.items() if "alike" in flags] == ["b", "new"]


def test_a_pool_of_another_board_protocol_or_form_is_refused(play, specs_of_members):
    play.make()
    path = play.folder / "pool.json"
    for values, why in (
        ({"board": "chess"}, "is a pool of chess, expected one of gardner_chess"),
        ({"board": BOARD, "protocol": "openings: others"}, "its games have another protocol"),
        ({"covariance": [[1.0]]}, "of 4 members"),
        ({"covariance": [[1.0], [1.0, 2.0]]}, r"pool\.json is no pool"),
        ({"covariance": [[0.0] * 4] * 4}, r"pool\.json is no pool"),
        ({"members": []}, "is no pool"),
    ):
        edit(path, **values)
        with pytest.raises(LadderGamesError, match=why):
            play("one", [*MEMBERS, NEWCOMERS[0]], pool=str(play.folder))
    with pytest.raises(LadderGamesError, match=r"no pool\.json in nowhere or eval/pools/nowhere; pools here: "):
        play("one", NEWCOMERS, pool="nowhere")


def test_a_ladder_does_not_write_into_its_pool(play, specs_of_members):
    play.make()
    edit(play.folder / "pool.json")
    with pytest.raises(LadderGamesError, match="is the pool's own folder"):
        play("pool", [*MEMBERS, NEWCOMERS[0]], pool=str(play.folder))


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"make_pool": True}, "make_pool needs an anchor"),
        ({"make_pool": True, "anchor": "a"}, "make_pool needs an anchor, a file of openings"),
        ({"make_pool": True, "anchor": "a", "openings": "x", "method": "wls"}, "make_pool needs .* bradley-terry"),
        ({"make_pool": True, "anchor": "a", "openings": "x", "players": ["a", "random"]}, "and no random mover"),
        ({"neighbours": 2}, 'neighbours is of matching "all"'),
        ({"anchor": "UCI_Elo", "anchor_rating": 5.0}, "anchor_rating must be 0 without an anchor and with UCI_Elo"),
        ({"anchor_rating": 5.0}, "anchor_rating must be 0 without an anchor"),
        ({"pool": "gardner_chess", "target_error": 20.0}, "target_error with a pool needs max_games"),
    ],
)
def test_keys_that_would_be_ignored_or_never_end_are_refused(keys, why):
    with pytest.raises(ConfigError, match=why):
        make_record(LadderConfig, {"players": ["x"], **keys}, "ladder")


@pytest.mark.parametrize("key", ["anchor", "openings", "make_pool", "neighbours"])
def test_what_a_pool_brings_is_not_given_beside_it(key):
    with pytest.raises(ConfigError, match=f"{key} must not be given with a pool"):
        value = {"make_pool": True, "neighbours": 1}.get(key, "x")
        make_record(LadderConfig, {"players": ["x"], "pool": "gardner_chess", key: value}, "ladder")
    for values in ({"matching": "paper"}, {"method": "wls"}, {"boards": ["chess", "gardner_chess"]}):
        with pytest.raises(ConfigError, match="a pool rates players of one board"):
            make_record(LadderConfig, {"players": ["x"], "pool": "gardner_chess", **values}, "ladder")


def test_all_pairs_with_a_pool_are_those_of_newcomers():
    from alphagateau.ratings.pool import Pool

    names = ["a", "b", "x", "y", "random"]
    standing = Standing(names, make_results([], names), pool=Pool(("a", "b"), [], [], "a"))  # pyright: ignore
    met = {p[:2] for p in next_pairings(LadderConfig(players=("x",), pool="p", matching="all"), standing)}
    assert met == {("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("x", "y"), ("x", "random"), ("y", "random")}
