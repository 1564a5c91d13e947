"""What the commands say of themselves."""

USAGE = """usage: alphagateau COMMAND ...

  train EXPERIMENT.toml [options]   train, or continue a run (--help lists every key of an experiment)
  info RUN|CKPT [--json]            what it is: board, network, iteration, weights hash, size, protocol
  match A B [--games 64]            games between two players: a run, a checkpoint, random, uci:COMMAND
  ladder LADDER.toml|PLAYERS...     plays, rates, writes table, plot, PGN and a page; continues if interrupted
  rate RESULTS.csv|GAMES.pgn        ratings from results, no playing (--method bradley-terry|wls, --anchor, --out)
  report RUN                        one self-contained HTML page of a run
  doctor EXPERIMENT.toml            the memory and time that an experiment will need here
  bench [--quick] [--json FILE]     this machine's throughput, as ratios against the plain reference
"""

TRAIN_USAGE = """usage: alphagateau train EXPERIMENT.toml [--init-from CKPT] [options]

Trains in checkpoints/<name of the file>; the same command continues a run that was stopped or killed.

  --init-from CKPT    start from the weights of a checkpoint or run, on the same board or another
  --run NAME          name of the run's folder (default: the name of the experiment file)
  --runs FOLDER       where runs live (default: checkpoints)
  --stop-after TIME   write a checkpoint and exit 0 after this time, such as 3h or 45m

On several hosts, the same command on each, in a folder that all of them see; under Slurm, Open MPI or Kubernetes the
processes find one another, elsewhere these three say how:

  --coordinator HOST:PORT   of process 0
  --num-processes N         in all
  --process-id I            this one, from 0
"""

HELP = {
    "info": """usage: alphagateau info RUN|CKPT [--json]

Board, network, iteration, weights hash, size and search of a checkpoint, or of the newest of a run.""",
    "match": """usage: alphagateau match A B [options]

Plays every opening twice, with colors swapped, without noise. A player is a run (its newest checkpoint), a checkpoint,
`random`, or an engine `uci:COMMAND?nodes=50` (also movetime, depth, or any UCI option); a checkpoint may be followed by
`?simulations=64` or `?search=policy`.

  --games N           games, even (default: 64)
  --simulations N     search simulations a ply of players that do not say (default: as in their training)
  --game NAME         board: gardner_chess or chess (default: what the first checkpoint learnt on)
  --opening-plies N   random plies of each opening (default: 4)
  --openings FILE     openings from a file instead, a FEN or UCI moves on each line
  --seed N            of the openings and the random mover (default: 0)
  --rows N            games in progress at a time (default: 64)
  --sprt ELO0,ELO1    stop as soon as a sequential test has decided between two Elo differences of A over B
  --pgn FILE          write the games""",
    "ladder": """usage: alphagateau ladder LADDER.toml | PLAYERS... [options]

Plays, rates, and writes ratings.csv, results.csv, games.pgn, ratings.svg and index.html. Every finished game is on disk
at once; the same command goes on. A run stands for all its checkpoints.

  --out FOLDER            where to (default: eval/<name of the file>, eval/ladder)
  --boards A,B            boards, each rated on its own (default: what the first checkpoint learnt on)
  --simulations N         of all players that do not say (default: as in their training)
  --matching KIND         informative (default), all, or paper (Algorithm 2)
  --games-per-pair N      games of one meeting, even (default: 20)
  --max-games N           stop after so many games (default: 20 a player; `all` and `paper`: to their end)
  --target-error ELO      stop once every standard error is at most this
  --method NAME           bradley-terry (default) or wls
  --anchor PLAYER         the player whose rating is 0
  --seed N                of the openings (default: 0)

A ladder file has these keys with underscores, and players, every, openings, opening_plies, rows, anchor_rating.""",
    "rate": """usage: alphagateau rate RESULTS.csv|GAMES.pgn [--method bradley-terry|wls] [--anchor NAME] [--out DIR]

Ratings from a table `player,opponent,wins,draws,losses` or from PGN; see docs/ratings.md for the methods.""",
    "report": """usage: alphagateau report RUN [--out FILE.html]

One self-contained HTML page: curves, health, calibration, cost, versions, sample games (default: RUN/report.html).""",
    "doctor": """usage: alphagateau doctor EXPERIMENT.toml [options of train]

Memory and time an experiment will need here, from its shapes and a few short trials. Exit code 1: it does not fit.""",
    "bench": """usage: alphagateau bench [--quick] [--json FILE]

Ratios against the plain reference, each pair timed in turns in this process; --quick takes under 2 minutes.""",
}
