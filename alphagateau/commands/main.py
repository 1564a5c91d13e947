"""A command line in, an exit code out: 0 done, 1 failed with a sentence, 2 bad input or usage.

Each command is a module of its name, imported when it is asked for: an argument record, whose docstrings are its
help, and `run(words) -> int`. Of the package's own errors a ValueError is of what the user named or wrote, and exits 2;
any other is a failure at work, and exits 1. A path that is not there is the user's too.
"""

import sys

COMMANDS = (
    *("train", "info", "report", "study", "match", "ladder", "rate", "pgn", "publish"),
    *("play", "board", "attention", "uci", "positions", "label", "evaluate", "puzzles", "sts", "doctor", "bench"),
)


def main(argv: list[str] | None = None) -> int:
    """Runs a command and returns its exit code; an error the user can act on is one sentence on standard error."""
    hear_interrupt = None
    try:  # all else is imported below, so that Ctrl-C is heard from the start
        hear_interrupt = end_on_interrupt()
        if argv is None:
            use_utf8()
        from alphagateau.runs.terminal import printing_visibly

        open_streams()
        with printing_visibly():
            return run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        print("alphagateau: interrupted", file=sys.stderr)
        return 130
    finally:
        if hear_interrupt:
            hear_interrupt()


def run(words: list[str]) -> int:
    """The exit code of a command line, its error said."""
    try:
        check(words)
        return run_command(words[0], words[1:]) if words and words[0][:1] != "-" else answer(words)
    except BrokenPipeError:
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        code, sentence = explain(error)
        if not code:
            raise
        from alphagateau.config import printable

        print(f"alphagateau: {printable(sentence)}", file=sys.stderr)
        return code


def end_on_interrupt():
    """Has Ctrl-C end the process at once, until a command listens to it; returns what has it raise again.

    As an exception it would be lost in the import of a library, or break it. A program begun in the background, which
    is to ignore it, goes on doing so.
    """
    import os
    import signal
    import threading

    def end(*_: object) -> None:
        if sys.stderr:
            os.write(2, b"alphagateau: interrupted\n")
        os._exit(130)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        return lambda: None
    signal.signal(signal.SIGINT, end)
    return lambda: signal.signal(signal.SIGINT, before)


def use_utf8() -> None:
    """Starts again with UTF-8 paths where python takes them for ASCII: the reader of checkpoints needs UTF-8."""
    import os

    if sys.getfilesystemencoding() == "ascii" and "utf8" not in sys.orig_argv:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def explain(error: Exception) -> tuple[int, str]:
    """(exit code, sentence) of an error; the code of a fault in the program is 0."""
    if isinstance(error, MemoryError):
        return 1, "there is not enough memory: ask for less at a time, or use a machine with more"
    if isinstance(error, OSError):
        is_input = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
        return 2 if is_input else 1, f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")
    if type(error).__module__.startswith("alphagateau"):
        return 2 if isinstance(error, ValueError) else 1, str(error)
    return 0, ""


def open_streams() -> None:
    """Gives each standard stream that is closed an empty one, and has them write what their encoding lacks as \\x."""
    import io
    import os

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, as long as the process lives
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def check(words: list[str]) -> None:
    """Raises UsageError for a word that is no text, such as a path of Latin-1 bytes, where no checkpoint is read."""
    from alphagateau.cli.arguments import UsageError
    from alphagateau.config.records import show

    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{show(word)} is not UTF-8 text: expected a path by another name") from None


def answer(words: list[str]) -> int:
    """What is asked of no command: help, the version. Raises UsageError."""
    from alphagateau.cli.arguments import UsageError

    if not words or words[0] in ("-h", "--help"):
        print_commands()
        return 0 if words else 2
    if words[0] != "--version":
        raise UsageError(f"unknown option {words[0]!r}: expected a command first, --help or --version")
    import importlib.metadata

    print(f"alphagateau {importlib.metadata.version('alphagateau')}")
    return 0


def run_command(name: str, words: list[str]) -> int:
    """The exit code of a command; 0 after --help. Raises UsageError for a name that is none."""
    import difflib
    import importlib

    from alphagateau.cli.arguments import UsageError

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
    import contextlib
    import importlib

    import tyro

    from alphagateau import __doc__ as about
    from alphagateau.runs.terminal import printing_freely

    modules = {name: importlib.import_module(f"alphagateau.commands.{name}") for name in COMMANDS}
    app = tyro.extras.SubcommandApp()
    for name, module in modules.items():
        app.command(module.run, name=name, help=module.Arguments.__doc__.partition("\n")[0])
    with contextlib.suppress(SystemExit), printing_freely():
        app.cli(prog="alphagateau", description=str(about).partition("\n")[0], args=["--help"])


def script():
    """Runs the command of this process and ends it, waiting for no thread, such as one that compiles what is no use."""
    import atexit
    import os

    code = main()
    atexit._run_exitfuncs()  # engines are closed; `sys.exit` would first join the threads
    try:
        sys.stdout.flush()
    except OSError as error:
        code = 1
        if not isinstance(error, BrokenPipeError):
            print(f"alphagateau: standard output: {error.strerror}", file=sys.stderr)
    os._exit(code)


if __name__ == "__main__":
    script()
