"""Labels: what an engine says, put down for each board; the same bytes whatever stops the work."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import chess
import numpy as np
import psutil
import pytest
from fake_engine import score
from random_games import random_records

from alphagateau.data import labelling, workers
from alphagateau.data.label_files import LabelJob, Unit, read_manifest, read_part, write_manifest
from alphagateau.data.labelling import label
from alphagateau.data.positions import gather
from alphagateau.data.tables import BOARDS, LABELS, DataError, read_table, write_table
from alphagateau.data.workers import search, search_moves
from alphagateau.engines.engine import Engine, EngineFault, EngineSetup
from alphagateau.games.notation import board_edges, board_from_fen
from alphagateau.games.scores import MATE, NO_SCORE, centipawns, encode, win_probability
from alphagateau.games.variants import get_game

FAKE = Path(__file__).parents[1] / "fake_engine.py"
STOCKFISH = shutil.which("stockfish", path="/usr/games:/usr/bin:/usr/local/bin")


def fake(manner: str = "", trigger: str = "") -> str:
    return f"{sys.executable} {FAKE} {manner!r} {trigger!r}"


@pytest.fixture(scope="module")
def boards(gardner, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("boards")
    gather(gardner, random_records(gardner, 6, seed=3), folder, 0.25)
    return folder


def order_of(gardner, boards: Path, output: Path, command: str, **changes) -> LabelJob:
    order = LabelJob(gardner, boards, output, command, {}, 50, "actions", "move", 2, 20.0)
    return order._replace(**changes)


def run(order: LabelJob) -> bool:
    return label(order, lambda: False, lambda pace: None)


def rows_of(path: Path) -> list[dict]:
    return read_table(path, LABELS)[0].to_pylist()


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.fixture(scope="module")
def labelled(gardner, boards, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("labels")
    assert run(order_of(gardner, boards, output, fake()))
    return output


def test_scores_become_win_probabilities():
    """The figures of the ChessBench paper's formula; a mate is certain."""
    codes = [
        encode("cp", 100),
        encode("cp", -300),
        encode("mate", 1),
        encode("mate", -7),
        encode("cp", 10**6),
        NO_SCORE,
    ]
    np.testing.assert_allclose(win_probability(codes)[:2], [0.591026, 0.248874], atol=5e-7)
    assert win_probability(codes)[2:4].tolist() == [1.0, 0.0] and np.isnan(win_probability(codes)[5])
    assert codes[2] == MATE - 1 and codes[3] == 7 - MATE and codes[4] == 30_000


def test_values_of_our_searches_become_scores_of_the_same_probability():
    """A value v is the probability (1 + v) / 2, to half a centipawn; a sure win or loss is certain."""
    values = np.array([0.0, 0.5, -0.98, 1.0, -1.0])
    codes = [centipawns(value) for value in values]
    assert codes[0] == 0 and codes[1] == 298 and codes[3:] == [30_000, -30_000]
    np.testing.assert_allclose(win_probability(codes), (1 + values) / 2, atol=5e-4)


def test_every_legal_move_of_every_board_has_its_score(gardner, boards, labelled):
    """The score of a search cut off at a bound is the one before it."""
    identity = json.dumps({k: v for k, v in read_manifest(labelled).items() if k != "parts"}, sort_keys=True)
    for split in ("train", "test"):
        table, _ = read_table(boards / f"{split}.parquet", BOARDS)
        names = sorted(path.stem for path in labelled.glob(f"{split}-*.parquet"))
        found = [row for name in names for row in read_part(labelled / f"{name}.parquet", identity).to_pylist()]
        assert [row["fen"] for row in found] == table["fen"].to_pylist()
        for row in found:
            moves = board_edges(gardner, board_from_fen(gardner, row["fen"]))
            assert row["edges"] == list(moves) == sorted(moves)
            assert row["scores"] == [score(row["fen"], move) for move in moves.values()]
            assert row["state_score"] == score(row["fen"], "") and set(row["depths"]) == {7} and not row["failed"]


def test_workers_and_stops_do_not_change_a_byte(gardner, boards, labelled, tmp_path):
    order = order_of(gardner, boards, tmp_path / "labels", fake(), workers=3)
    looks = iter(range(10**9))
    assert not label(order._replace(workers=1), lambda: next(looks) > 300, lambda pace: None)
    assert run(order)
    assert files_of(tmp_path / "labels") == files_of(labelled)


def test_the_last_thing_told_is_what_was_done(gardner, boards, tmp_path):
    told = []
    order = order_of(gardner, boards, tmp_path, fake(), target="states")
    assert label(order, lambda: False, told.append)
    assert told[-1].done == told[-1].total == told[-1].labelled > 0
    assert 0 < told[-1].engine_seconds < 2.5 * told[-1].seconds


@pytest.mark.whole
def test_killed_at_any_moment_it_ends_with_the_same_bytes(gardner, boards, labelled, tmp_path):
    words = ["label", str(boards), "--output", str(tmp_path / "labels"), "--engine", fake(), "--nodes", "50"]
    command = [sys.executable, "-m", "alphagateau.commands.main", *words, "--workers", "2"]
    for seconds in (0.2, 0.0, 0.6):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None and not psutil.Process(process.pid).children():  # engines: it is at work
            time.sleep(0.01)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run(command, check=False).returncode == 0
    assert files_of(tmp_path / "labels") == files_of(labelled)


@pytest.mark.parametrize(
    ("manner", "why"),
    [("crash", "ended by itself (exit code 3)"), ("hang", "did not answer 'go nodes 50' within 0.1 s")],
)
def test_an_engine_that_fails_costs_its_board(gardner, boards, tmp_path, monkeypatch, manner, why):
    """The other boards have all the time that a slow machine may take, as the one that hangs has none to answer in."""
    victim = read_table(boards / "train.parquet", BOARDS)[0]["fen"][5].as_py()
    asking = Engine._asking

    def impatient(engine: Engine, question: str, seconds: float, text: str):
        return asking(engine, question, 0.1 if manner == "hang" and victim in text else seconds, text)

    monkeypatch.setattr(Engine, "_asking", impatient)
    order = order_of(gardner, boards, tmp_path, fake(manner, victim), timeout=600.0)
    assert run(order)
    (line,) = (tmp_path / "failed.jsonl").read_text().splitlines()
    failure = json.loads(line)
    assert failure["fen"] == victim and failure["row"] == 5 and why in failure["why"]
    table, _ = read_table(tmp_path / "train-00000.parquet", LABELS)
    assert [row["state_score"] == NO_SCORE for row in table.to_pylist()].count(True) == 1


def test_what_is_done_is_done_without_the_engine(gardner, boards, labelled, tmp_path):
    """A command that is no engine cannot be started; other labels than those that are there need it."""
    shutil.copytree(labelled, tmp_path / "labels")
    order = order_of(gardner, boards, tmp_path / "labels", f"{sys.executable} -c pass")
    assert run(order) and files_of(tmp_path / "labels") == files_of(labelled)
    with pytest.raises(DataError, match="engine '' cannot be started"):
        run(order._replace(command="", nodes=51))
    for changes in ({"nodes": 51}, {"target": "best"}, {"options": {"Hash": "4"}}, {"options": {"Skill": "1"}}):
        with pytest.raises(DataError, match="ended by itself"):
            run(order._replace(**changes))
    (tmp_path / "labels" / "test-00000.parquet").unlink()
    with pytest.raises(DataError, match="ended by itself"):
        run(order)


def test_what_an_engine_remembers_of_a_board_is_the_same_with_any_workers(gardner, boards, labelled, tmp_path):
    order = order_of(gardner, boards, tmp_path / "one", fake("remember"), clear="board", workers=1)
    assert run(order) and run(order._replace(output=tmp_path / "four", workers=4))
    assert files_of(tmp_path / "one") == files_of(tmp_path / "four")
    once, fresh = (
        read_table(path / "test-00000.parquet", LABELS)[0].to_pylist() for path in (tmp_path / "one", labelled)
    )
    for known, row in zip(once, fresh, strict=True):
        assert known["scores"] == [score + number for number, score in enumerate(row["scores"], 1)]
    with pytest.raises(DataError, match=r"manifest.json has engine"):
        run(order._replace(clear="move"))


@pytest.mark.parametrize("manner", ["", "few"])
def test_one_search_scores_all_moves(gardner, boards, labelled, tmp_path, manner):
    """By the last whole depth, without bounds; of moves without a score more is asked. The state has the best score."""
    order = order_of(gardner, boards, tmp_path / "one", fake(manner), multipv=True, workers=3)
    assert run(order)
    together, alone = (
        read_table(path / "test-00000.parquet", LABELS)[0].to_pylist() for path in (order.output, labelled)
    )
    count = 0
    for row, each in zip(together, alone, strict=True):
        if len(row["edges"]) > 1:  # a single move is one line, which the fake answers as it answers any search
            assert (row["edges"], row["scores"]) == (each["edges"], each["scores"])
            assert row["state_score"] == max(row["scores"]) and set(row["depths"]) == {4}
            count += 1
    assert count > 10
    with pytest.raises(DataError, match=r"manifest.json has engine"):
        run(order._replace(multipv=False))


def test_an_engine_that_shows_too_few_moves_is_refused(gardner, boards, tmp_path):
    """Before it claims the folder, which another order may then have."""
    order = order_of(gardner, boards, tmp_path, fake("narrow"), multipv=True)
    with pytest.raises(DataError, match=r"shows at most 4 moves \(MultiPV\), and boards of gardner_chess have up to"):
        run(order)
    assert run(order._replace(multipv=False))


def test_a_split_of_one_board_that_fails_costs_that_board(gardner, boards, tmp_path):
    """An engine that fails on several boards one after another is given up."""
    table, about = read_table(boards / "train.parquet", BOARDS)
    for split, part in (("train", table.slice(0, 10)), ("test", table.slice(10, 1))):
        write_table(tmp_path / f"{split}.parquet", part.to_pydict(), BOARDS, about)
    victim = table["fen"][10].as_py()
    order = order_of(gardner, tmp_path, tmp_path / "labels", fake("crash", victim))
    assert run(order)
    (line,) = (order.output / "failed.jsonl").read_text().splitlines()
    assert json.loads(line)["fen"] == victim
    with pytest.raises(DataError, match="row 4: the engine is given up: it failed on 5 boards one after another"):
        run(order._replace(output=tmp_path / "none", command=fake("crash"), workers=1))


def test_an_engine_that_hangs_is_not_tried_twice_on_each_board(gardner, tmp_path, monkeypatch):
    """Two searches of the first board and one of each other; five boards are enough."""
    fens = []

    def hang(order, engine, fen):
        fens.append(fen)
        raise EngineFault("engine 'x' did not answer 'go nodes 50' within 60 s")

    idle = SimpleNamespace(process=SimpleNamespace(pid=2**30), close=lambda: None)  # no process has this number
    monkeypatch.setattr(workers, "label_board", hang)
    monkeypatch.setattr(workers, "open_engine", lambda order, should_stop: SimpleNamespace(**vars(idle)))
    order = order_of(gardner, tmp_path, tmp_path, "x", workers=1)
    units = [Unit("train-00000", [{"fen": str(number)} for number in range(256)], "train.parquet")]
    pool = workers.Workers(order, "", units, lambda fen: None, lambda: False)
    pool.run(idle, lambda pace: None)
    assert fens == ["0", "0", "1", "2", "3", "4"]
    assert str(pool.failure) == (
        "train.parquet, row 4: the engine is given up: it failed on 5 boards one after another, engine 'x' did not "
        "answer 'go nodes 50' within 60 s"
    )


def test_a_board_whose_game_is_over_is_no_fault_of_the_engine(tmp_path):
    """It "answered , which is no legal move"."""
    mate, order = "k7/1Q6/1K6/8/8/8/8/8 b - - 0 1", order_of(get_game("chess"), tmp_path, tmp_path, "x")
    engine: Any = None
    for changes in ({}, {"multipv": True}):
        with pytest.raises(ValueError, match=f"the game is over in {mate}, expected a legal move"):
            workers.label_board(order._replace(**changes), engine, mate)


def test_the_start_of_an_engine_is_no_searching(gardner, tmp_path, monkeypatch):
    """Its three seconds in a tenth of one made cores 900 % busy."""
    idle: Any = SimpleNamespace(process=SimpleNamespace(pid=2**30), close=lambda: None)
    monkeypatch.setattr(workers, "_processor_seconds", lambda engine: 3.0)
    told: list[workers.Pace] = []
    pool = workers.Workers(order_of(gardner, tmp_path, tmp_path, "x"), "", [], lambda fen: None, lambda: False)
    pool.run(idle, told.append)
    assert told[-1].engine_seconds == 0


def test_a_stop_is_heard_while_an_engine_does_not_answer(gardner, boards, tmp_path):
    """At its start and in a search, neither of which would be given up for 600 seconds."""
    order = order_of(gardner, boards, tmp_path / "labels", fake("silent"), timeout=600.0)
    assert not label(order, lambda: True, lambda pace: None)
    is_told = []  # the first thing told comes while engines search
    order = order._replace(command=fake("hang"))
    assert not label(order, lambda: bool(is_told), is_told.append)
    assert not list(order.output.glob("*.parquet"))


def test_an_engine_that_lies_is_refused(gardner, boards, tmp_path):
    with pytest.raises(DataError, match=r"train.parquet, row \d+: engine .* answered a1a1 to searchmoves"):
        run(order_of(gardner, boards, tmp_path, fake("lie")))
    with pytest.raises(DataError, match="refuses an option that it offers: No such option: Limit"):
        run(order_of(gardner, boards, tmp_path, fake("deny"), options={"Limit": "true"}))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("Contempt", "0", "has no option 'Contempt'"),
        ("Hash", "100", "option 'Hash' is '100', expected a whole number from 1 to 99"),
        ("hash", "much", "option 'hash' is 'much', expected a whole number from 1 to 99"),
        ("Limit", "1", "option 'Limit' is '1', expected true or false"),
        ("Style", "Wild", "option 'Style' is 'Wild', expected one of Solid, Risky"),
        ("MultiPV", "2", "option 'MultiPV' is '2', expected none: what is searched decides it"),
        ("UCI_Variant", "chess", "option 'UCI_Variant' is 'chess', expected none: what is searched decides it"),
    ],
)
def test_an_option_that_the_engine_would_pass_over_is_refused(gardner, boards, tmp_path, name, value, why):
    """Else the manifest would say what the labels are not."""
    with pytest.raises(DataError, match=why):
        run(order_of(gardner, boards, tmp_path, fake(), options={name: value}))
    assert run(order_of(gardner, boards, tmp_path, fake(), options={"Hash": "99", "Style": "risky", "Limit": "true"}))


def test_an_engine_that_says_nothing_at_its_start_is_one_sentence(gardner, boards, tmp_path):
    with pytest.raises(DataError, match=r"engine .* did not answer 'uci' within 0.5 s"):
        run(order_of(gardner, boards, tmp_path, fake("silent"), timeout=0.5))
    with pytest.raises(DataError, match="engine '' cannot be started"):
        run(order_of(gardner, boards, tmp_path, ""))


def test_a_board_of_another_game_is_named_with_its_file_and_row(gardner, boards, tmp_path):
    found, about = read_table(boards / "test.parquet", BOARDS)
    columns = {name: found[name].to_pylist() for name in BOARDS.names}
    columns["fen"][3] = "8/8/8/8/8/8/8/K1k5 w - - 0 1"
    shutil.copytree(boards, tmp_path / "boards")
    write_table(tmp_path / "boards" / "test.parquet", columns, BOARDS, about)
    with pytest.raises(DataError, match=r"test.parquet, row 3: FEN .* has a wrong board"):
        run(order_of(gardner, tmp_path / "boards", tmp_path / "labels", fake(), target="states"))


def test_a_labelling_that_labelled_nothing_leaves_its_folder_to_another(gardner, boards, tmp_path):
    """A wrong number of nodes, seen at once, was corrected by removing a folder by hand."""
    order = order_of(gardner, boards, tmp_path / "labels", fake(), nodes=51)
    assert not label(order, (order.output / "manifest.json").exists, lambda pace: None)  # which is of the first moment
    assert run(order._replace(nodes=50))


def unfinished(folder: Path) -> None:
    """Makes its labels such as have no hashes yet."""
    manifest = {key: value for key, value in read_manifest(folder).items() if key != "parts"}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_labels_of_another_engine_are_not_mixed_in(gardner, boards, labelled, tmp_path):
    shutil.copytree(labelled, tmp_path / "labels")
    with pytest.raises(DataError, match=r"manifest.json has engine"):
        run(order_of(gardner, boards, tmp_path / "labels", fake(), nodes=51))
    assert run(order_of(gardner, boards, tmp_path / "other", fake(), nodes=51))
    shutil.copy(tmp_path / "other" / "test-00000.parquet", tmp_path / "labels")
    unfinished(tmp_path / "labels")
    with pytest.raises(DataError, match=r"test-00000.parquet holds labels of another engine"):
        run(order_of(gardner, boards, tmp_path / "labels", fake()))


def test_labels_found_before_are_taken_over(gardner, boards, labelled, tmp_path, monkeypatch):
    """Of more games only the boards that are new are searched, and the bytes are those of labelling all."""
    (tmp_path / "more").mkdir()
    gather(gardner, random_records(gardner, 8, seed=3), tmp_path / "more", 0.25)
    whole = order_of(gardner, tmp_path / "more", tmp_path / "whole", fake())
    assert run(whole)
    asked, ask = [], workers.label_board
    monkeypatch.setattr(
        workers, "label_board", lambda order, engine, fen: (asked.append(fen), ask(order, engine, fen))[1]
    )
    assert run(whole._replace(output=tmp_path / "labels", known=labelled))
    assert files_of(tmp_path / "labels") == files_of(tmp_path / "whole")
    before = {fen for path in boards.glob("*.parquet") for fen in read_table(path, BOARDS)[0]["fen"].to_pylist()}
    assert asked and before.isdisjoint(asked)
    with pytest.raises(DataError, match=r'has labels whose engine is \{.*"nodes": 50.*\}, not \{.*"nodes": 51'):
        run(whole._replace(output=tmp_path / "others", known=labelled, nodes=51))
    with pytest.raises(DataError, match=r"is no manifest of labels"):
        run(whole._replace(output=tmp_path / "none", known=tmp_path / "more"))


def test_a_part_cut_short_is_named(gardner, boards, labelled, tmp_path):
    shutil.copytree(labelled, tmp_path / "labels")
    part = tmp_path / "labels" / "train-00000.parquet"
    part.write_bytes(part.read_bytes()[:-40])
    unfinished(part.parent)
    with pytest.raises(DataError, match=r"train-00000.parquet cannot be read"):
        run(order_of(gardner, boards, tmp_path / "labels", fake()))


def test_a_part_that_changed_is_no_label_when_the_command_is_given_again(gardner, boards, labelled, tmp_path):
    """Its hash went into the manifest, and packing took it; so did other labels, by --known."""
    shutil.copytree(labelled, tmp_path / "labels")
    order, part = order_of(gardner, boards, tmp_path / "labels", fake()), tmp_path / "labels" / "train-00000.parquet"
    table, about = read_table(part, LABELS)
    write_table(part, {**table.to_pydict(), "state_score": [1] * table.num_rows}, LABELS, about)
    manifest = {key: value for key, value in read_manifest(order.output).items() if key != "parts"}
    known = order._replace(output=tmp_path, known=order.output)
    for refused in (lambda: run(order), lambda: labelling.read_known(known, manifest)):
        with pytest.raises(DataError, match=r"train-00000.parquet does not have the hash in its manifest.json: delete"):
            refused()
    part.unlink()
    write_manifest(order.output, manifest)  # does not raise


@pytest.mark.skipif(STOCKFISH is None, reason="no stockfish")
def test_stockfish_scores_all_moves_at_once():
    """The two mates are mates; what each move is worth is near what longer searches of its own say."""
    engine = Engine(EngineSetup(str(STOCKFISH), defaults=workers.OWN_OPTIONS), get_game("chess"))
    try:
        fen = "6k1/5ppp/8/8/8/8/1R6/R5K1 w - - 0 1"
        moves = [move.uci() for move in chess.Board(fen).legal_moves]
        found = search_moves(engine, fen, 200, moves)
        assert found == search_moves(engine, fen, 200, moves)
        assert {move for move, said in found.items() if said.score == MATE - 1} == {"a1a8", "b2b8"}
        deep = {move: search(engine, fen, 5000, move) for move in moves}
        codes = [[said[move].score for move in moves] for said in (found, deep)]
        assert np.abs(np.subtract(*win_probability(codes))).mean() < 0.1
    finally:
        engine.close()


@pytest.mark.skipif(STOCKFISH is None, reason="no stockfish")
def test_stockfish_says_mate_and_stalemate():
    engine = Engine(EngineSetup(str(STOCKFISH), defaults=workers.OWN_OPTIONS), get_game("chess"))
    try:
        mate = search(engine, "6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", 1000, "a1a8")
        stalemate = search(engine, "7k/8/6K1/8/8/8/8/5Q2 w - - 0 1", 1000, "f1f7")
        assert (mate.score, stalemate.score) == (MATE - 1, 0) and engine.options["Threads"] == "1"
        again = search(engine, "6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", 1000, "a1a8")
        assert again == mate
    finally:
        engine.close()
