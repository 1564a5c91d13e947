"""The report of a run, from its files alone, with whatever a stranger may have put into them."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from markup import browser, dom_of, said_by

from alphagateau import config
from alphagateau.commands.main import main
from alphagateau.config import ConfigError
from alphagateau.reports.run import write_report
from alphagateau.runs import checkpoint

SMOKE = Path(__file__).parents[2] / "experiments" / "smoke.toml"
TAME = "Ada"
SCRIPT = """</script><script>document.title='taken'</script><img src="ADDRESS/1" onerror="document.title='taken'">"""
SCRIPT += """<link rel=stylesheet href=ADDRESS/2><iframe src=ADDRESS/3></iframe><svg onload="document.title='taken'">"""
PGN = """[Event "{name}"]
[White "{name}"]
[Black "../../{name}"]
[Result "*"]
[Variant "Gardner"]

1. b3 {{{name}}} cxb3 ; {name}
2. axb3 *

"""


def make_run(folder: Path, name: str) -> Path:
    """A run of 30 iterations as its files, each text in them being `name`."""
    experiment = config.load(SMOKE)
    tree = {"params": {"w": np.zeros(3, np.float32)}}
    manifest = {
        "iteration": 30,
        "order": [30, 0, 0],
        "progress": {},
        "symptoms": [name],
        "game": name,
        "network": {name: name},
        "search": {name: 1},
        "weights_hash": name,
        "parameters": 3,
        "optimizer_steps": 90,
    }
    checkpoint.save(folder / "checkpoints", "30", {checkpoint.WEIGHTS: tree}, manifest)
    (folder / "config.toml").write_text(config.dumps(experiment))
    start = dict.fromkeys(("command", "commit", "python", "time"), name)
    start |= {"devices": [name], "versions": {name: name, "jax": name}}
    (folder / "run.json").write_text(json.dumps({"starts": [start], "unhealthy": {"why": name}}))
    calibration = [[40, v / 5, v / 6] for v in range(-4, 5)]
    rows = [
        {"iteration": i, "train/policy_loss": 2 / i, "train/weight_norm": 1e6 if i == 7 else 1.0}
        | {"selfplay/games": 8, "selfplay/draw_rate": 0.5, "time/train": 3.0, name: i, "train/calibration": calibration}
        for i in range(1, 31)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "games").mkdir()
    (folder / "games" / "000030.pgn").write_text(PGN.format(name=name.replace('"', "'").replace("}", ")")))
    (folder / "games" / "000029.pgn").write_text(f"1. e5 {name}")
    scores = [["iteration 30", name, 3, 2, 1, 0]]
    (folder / "results.json").write_text(json.dumps({"weights_hash": name, "evaluation": [], "scores": scores}))
    (folder / "ladder").mkdir()
    quoted = name.replace('"', '""')
    (folder / "ladder" / "ratings.csv").write_text(
        f'player,rating,standard_error,games,score\n"{quoted}",1000,20,40,0.5\nrun/30,1100,20,40,0.6\n'
    )
    return folder


@pytest.fixture
def listener():
    """The address of a server, and the requests that reached it."""
    requests = []

    class Note(BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_error(404)

        def log_message(self, *words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Note)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    server.server_close()


def test_the_report_holds_curves_ladder_health_cost_games_config_and_versions(tmp_path, capsys):
    run = make_run(tmp_path / "run", TAME)
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out.strip() == str(run / "report.html")
    page = (run / "report.html").read_text().replace("<wbr>", "")
    for text in (
        "30 of 4 iterations",
        "train/policy_loss",
        "the weights are too large",  # health, of iteration 7
        "40 positions predicted 0.8",  # the calibration plot
        "device-hours",
        "version of jax",
        "selfplay.num_games",
        "3 won, 2 drawn, 1 lost",
        "1,100",  # the ladder
        '"axb3"',  # a game to step through
        "000029.pgn is left out: PGN game 1: ",
    ):
        assert text in page, text


def test_a_report_of_what_is_no_run_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r"is not a run: it has no config\.toml"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    "text", ["player\na\n", "player,rating,standard_error,games,score\na,b,c,d,e\n", "player\n\x00\n", "a\n,,"]
)
def test_a_damaged_ratings_file_is_one_sentence(tmp_path, text):
    run = make_run(tmp_path / "run", TAME)
    (run / "ladder" / "ratings.csv").write_text(text)
    with pytest.raises(ConfigError, match=r"is no ratings.csv of a ladder") as caught:
        write_report(run)
    assert "\n" not in str(caught.value)


@browser
def test_a_report_of_hostile_files_runs_no_script_and_sends_no_request(tmp_path, listener):
    """Run name, players, PGN tags and comments, metric names, versions: even where any script of the page may run."""
    address, requests = listener
    hostile = SCRIPT.replace("ADDRESS", address)
    run = make_run(tmp_path / "<svg onload=document.title='taken'>", hostile)
    page = write_report(run).read_text(encoding="utf-8")
    assert "taken" in page
    dom_of(page, tmp_path, "#game=1&ply=2")
    driver = """
        document.title = JSON.stringify({
            title: document.title,
            foreign: document.querySelectorAll("img, iframe, link[rel=stylesheet], svg[onload]").length,
            scripts: document.scripts.length,
            game: document.querySelector(".stage dd").textContent,
        });"""
    said = said_by(dom_of(page, tmp_path, driver=driver))
    assert said["title"] == "Run <svg onload=document.title='taken'>"
    assert (said["foreign"], said["scripts"]) == (0, 3)
    assert "document.title='taken'" in said["game"]
    assert requests == []
