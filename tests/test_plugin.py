"""A plug-in that is installed from a distribution of its own: examples/plugin, by the command line alone."""

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "examples" / "plugin"
TINY = "--num-iterations 3 --selfplay.num-games 8 --selfplay.num-plies 8 --window.size 256 --training.batch-size 32"
TINY += " --network.hidden-size 8 --network.num-blocks 1 --sample-roots 0 --evaluation.num-games 8"
TRAIN = ["train", str(PLUGIN / "silverman.toml"), *TINY.split()]
MAIN = "from alphagateau.commands.main import script; script()"
# A run that is killed with its second iteration done and not yet on disk.
KILLED = f"""
import os, signal
from alphagateau.runs import checkpoint
save, saved = checkpoint.save, []
def save_or_die(*arguments, **named):
    saved.append(1)
    if len(saved) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return save(*arguments, **named)
checkpoint.save = save_or_die
{MAIN}
"""

FIRST_MOVES = ("a2b3", "b2a3", "b2c3", "c2b3", "c2d3", "d2c3")  # the captures: nothing else can move

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A working folder whose commands find the plug-in, which is installed beside it."""
    folder = tmp_path_factory.mktemp("plugin")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-build-isolation"]
    options = ["--no-deps", "--no-index", "--target", str(folder / "installed"), str(PLUGIN)]
    subprocess.run([*pip, *options], check=True)
    return folder


def start(folder: Path, *words: str, program: str = MAIN, place: str = "installed") -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / place), str(ROOT)])}
    pipe = subprocess.PIPE
    command = [sys.executable, "-P", "-c", program, *words]
    return subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def run(folder: Path, *words: str, heard: str = "", code: int = 0, **options: str) -> str:
    """What a command prints, on standard error if it fails."""
    with start(folder, *words, **options) as process:
        said, errors = process.communicate(heard)
    assert process.returncode == code, (words, said, errors)
    return errors if code else said


def hash_of(folder: Path, run_name: str) -> str:
    found = json.loads(run(folder, "info", f"checkpoints/{run_name}", "--json"))
    assert (found["game"], found["iteration"]) == ("silverman_chess", 3)
    return found["weights_hash"]


@pytest.fixture(scope="module")
def published(folder) -> str:
    """A run that was killed, went on and was published."""
    run(folder, *TRAIN, "--run", "killed", program=KILLED, code=-9)
    run(folder, *TRAIN, "--run", "killed")
    run(folder, "publish", "checkpoints/killed", "silverman_small")
    return "checkpoints/silverman_small"


def test_a_killed_run_ends_with_the_weights_of_one_that_nothing_interrupted(folder, published):
    run(folder, *TRAIN, "--run", "whole")
    record = json.loads((folder / "checkpoints" / "whole" / "run.json").read_text())
    assert record["starts"][0]["versions"]["silverman"] == "0.1.0"
    assert hash_of(folder, "killed") == hash_of(folder, "whole")
    assert hash_of(folder, "silverman_small") == hash_of(folder, "whole")


def test_it_is_rated_on_a_ladder(folder, published):
    words = ["--matching", "all", "--games-per-pair", "2", "--every", "3", "--out", "rated"]
    run(folder, "ladder", "checkpoints/killed", f"{published}?search=policy", "random", *words)
    rated = (folder / "rated" / "ratings.csv").read_text()
    assert all(name in rated for name in ("killed/0", "killed/3", "silverman_small", "random"))
    assert "0 break them; boards: 12 of silverman_chess" in run(folder, "pgn", "rated/games.pgn")


def test_it_plays_as_a_uci_engine(folder, published):
    heard = "uci\nsetoption name UCI_Variant value silverman\nposition startpos\ngo nodes 8\n"
    said = run(folder, "uci", published, heard=heard).splitlines()
    assert any("UCI_Variant" in line and "var silverman" in line for line in said)
    (best,) = (line.split()[1] for line in said if line.startswith("bestmove"))
    assert best in FIRST_MOVES


def test_it_plays_on_the_page(folder, published):
    with start(folder, "board", published, "--port", "0") as process:
        assert process.stdout
        port = int(process.stdout.readline().partition("http://127.0.0.1:")[2].split()[0])
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/")
        assert "silverman_chess" in connection.getresponse().read().decode()
        body = json.dumps({"board": "silverman_chess", "simulations": 0})
        connection.request("POST", "/search", body, {"Content-Type": "application/json"})
        answer = connection.getresponse().read().splitlines()[-1]
        process.terminate()
        process.communicate()
    assert json.loads(answer)["move"] in FIRST_MOVES


def test_without_the_plug_in_its_checkpoint_is_refused_with_what_is_known(folder, published):
    said = run(folder, "match", published, "random", code=1, place="nowhere")
    assert 'game is "silverman_chess", expected game to be one of chess, gardner_chess, los_alamos_chess' in said
