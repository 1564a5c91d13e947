"""A command line in, an exit code out: 0 done, 1 failed with a sentence, 2 bad input or usage.

Each command is a module of its name, imported when it is asked for: an argument record, whose docstrings are its
help, and `run(words) -> int`.
"""

import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Sequence

from alphagateau import __doc__ as ABOUT
from alphagateau.commands.arguments import UsageError
from alphagateau.config import ConfigError

COMMANDS = (
    *("train", "info", "report", "study", "match", "ladder", "rate", "pgn", "publish"),
    *("play", "board", "attention", "uci", "positions", "label", "evaluate", "puzzles", "sts", "doctor", "bench"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; an error the user can act on is one sentence on standard error."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if not words or words[0] in ("-h", "--help"):
            print_commands()
            return 0 if words else 2
        return run_command(words[0], words[1:])
    except (ConfigError, UsageError) as error:
        return _fail(error, 2)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except MemoryError:
        return _fail("there is not enough memory for this: expected smaller input, or more memory", 1)
    except OSError as error:
        return _fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "), 1)
    except RuntimeError as error:
        if type(error).__module__.startswith("alphagateau"):
            return _fail(error, 1)
        raise


def run_command(name: str, words: Sequence[str]) -> int:
    """The exit code of a command; 0 after --help. Raises UsageError for a name that is none."""
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(COMMANDS)}"
        raise UsageError(f"unknown command {name!r}: {hint}")
    try:
        return importlib.import_module(f"alphagateau.commands.{name}").run(words)
    except SystemExit as stop:  # after --help
        return int(stop.code or 0)


def print_commands() -> None:
    """What each command does, on standard output."""
    import tyro

    modules = {name: importlib.import_module(f"alphagateau.commands.{name}") for name in COMMANDS}
    app = tyro.extras.SubcommandApp()
    for name, module in modules.items():
        app.command(module.run, name=name, help=module.Arguments.__doc__.partition("\n")[0])
    with contextlib.suppress(SystemExit):
        app.cli(prog="alphagateau", description=str(ABOUT).partition("\n")[0], args=["--help"])


def _fail(error: object, code: int) -> int:
    print(f"alphagateau: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
