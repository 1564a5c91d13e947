"""Runs a command line and returns its exit code: 0 done, 1 failed with a sentence, 2 bad input or usage.

Each command is a module of its name, imported only when it runs: `Arguments`, a record whose docstrings are its help,
and `run(arguments) -> int`. Where the options depend on a file that is named before them, `read_arguments(words)` reads
them, and `run` takes what it returns. Of the package's own errors a ValueError is about what the user named or wrote,
and exits 2; any other is a failure at work, and exits 1. A path that does not exist exits 2 too.
"""

import os
import sys

COMMANDS = (
    *("train", "info", "report", "study", "match", "ladder", "rate", "pgn", "publish"),
    *("play", "board", "uci", "positions", "label", "evaluate", "puzzles", "sts", "doctor"),
)


def main(argv: list[str] | None = None) -> int:
    """Runs a command and returns its exit code; an error that the user can act on is one line on standard error."""
    restore_interrupt = None
    try:  # all else is imported below, so that Ctrl-C is caught from the start
        restore_interrupt = end_on_interrupt()
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
        if restore_interrupt:
            restore_interrupt()


def run(words: list[str]) -> int:
    """Runs a command line, prints its error and returns its exit code."""
    try:
        check_text(words)
        if not words or words[0] in ("-h", "--help"):
            print_commands()
            return 0 if words else 2
        if words[0] == "--version":
            from alphagateau.runs.programs import own_version

            print(f"alphagateau {own_version()}")
            return 0
        return run_command(words[0], words[1:])
    except BrokenPipeError:  # the reader of the output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        code, sentence = explain(error)
        if not code:
            raise
        from alphagateau.config import printable

        print(f"alphagateau: {printable(sentence)}", file=sys.stderr)
        return code


def run_command(name: str, words: list[str]) -> int:
    """Runs the command `name`. Raises UsageError if there is none."""
    from difflib import get_close_matches
    from importlib import import_module

    from alphagateau.cli.arguments import UsageError, parse

    if name.startswith("-"):
        raise UsageError(f"unknown option {name!r}: expected a command first, --help or --version")
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(COMMANDS)}"
        raise UsageError(f"unknown command {name!r}: {hint}")
    try:
        command = import_module(f"alphagateau.commands.{name}")
        if hasattr(command, "read_arguments"):
            return command.run(*command.read_arguments(words))
        return command.run(parse(command.Arguments, words, name))
    except SystemExit as stop:  # after --help; a plug-in's has a text
        if isinstance(stop.code, str):
            raise UsageError(stop.code) from None
        return int(stop.code or 0)


def print_commands() -> None:
    """Prints the first line of each command's help."""
    from importlib import import_module
    from shutil import get_terminal_size

    from alphagateau import __doc__ as about
    from alphagateau.runs.terminal import at_words

    print(f"usage: alphagateau COMMAND [OPTIONS]\n\n{str(about).splitlines()[0]}\n")
    for name in COMMANDS:
        meaning = import_module(f"alphagateau.commands.{name}").Arguments.__doc__.splitlines()[0]
        print(at_words(f"  {name:9}  {meaning}", get_terminal_size().columns).replace("\n", "\n" + " " * 13))
    print("\nalphagateau COMMAND --help describes a command, --version prints the version.")


def check_text(words: list[str]) -> None:
    """Raises UsageError for a word that is not UTF-8, such as a path in Latin-1, where no checkpoint can be read."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            from alphagateau.cli.arguments import UsageError
            from alphagateau.config.records import show

            raise UsageError(f"{show(word)} is not UTF-8 text: expected a path by another name") from None


def explain(error: Exception) -> tuple[int, str]:
    """(exit code, sentence) of an error; the code is 0 for a fault in the program."""
    is_of_device = type(error).__name__ == "JaxRuntimeError" and "RESOURCE_EXHAUSTED" in str(error)
    if isinstance(error, MemoryError) or is_of_device:
        return 1, "there is not enough memory: ask for less at a time, or use a machine with more"
    if isinstance(error, OSError):
        is_input = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
        return 2 if is_input else 1, f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")
    if type(error).__module__.startswith("alphagateau"):
        return 2 if isinstance(error, ValueError) else 1, str(error)
    return 0, ""


def end_on_interrupt():
    """Makes Ctrl-C end the process at once, until a command handles it; returns a call that undoes this.

    As an exception it would be lost in the import of a library, or break it. A program begun in the background, which
    ignores it, goes on doing so.
    """
    import signal
    import threading

    def end(*_: object) -> None:
        if sys.stderr:
            os.write(2, b"alphagateau: interrupted\n")
        os._exit(130)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        return None
    signal.signal(signal.SIGINT, end)
    return lambda: signal.signal(signal.SIGINT, before)


def use_utf8() -> None:
    """Starts again with UTF-8 paths where python takes them for ASCII: the reader of checkpoints needs UTF-8."""
    if sys.getfilesystemencoding() == "ascii" and "utf8" not in sys.orig_argv:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def open_streams() -> None:
    """Opens an empty stream for each closed standard stream; characters that output lacks become escapes."""
    import io

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, as long as the process lives
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def script():
    """Runs the command of this process and ends it without waiting for a thread, such as one that still compiles."""
    import atexit

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
