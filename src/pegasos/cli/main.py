"""The command `pegasos`: its commands, its errors in one line, its exit codes.

Exit codes: 0 done, 1 a fault of the program, 2 bad input or usage, 3 environment (disk,
permission, memory), 130 interrupted (129, 143: by the signals HUP and TERM). Commands import what
is heavy when they run, so that `pegasos --help` is quick.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import pegasos
from pegasos.cli import compare, convert, demo, evaluate, inspect, predict, threshold, train, warmup
from pegasos.cli.console import as_typed, show_warnings, speak_of
from pegasos.cli.stop import Terminated, hear_signals
from pegasos.data.errors import DataError


class OneLineErrors(TyperGroup):
    """A group of commands whose errors are one line; `--debug` shows where they come from."""

    def main(self, args: Any = None, *rest: Any, **options: Any) -> Any:
        args = list(sys.argv[1:] if args is None else args)
        options["standalone_mode"] = False
        speak_of(next((self.commands[word].params for word in args if word in self.commands), ()))
        try:
            code = super().main(args, *rest, **options)
            message = "interrupted" if code == 130 else ""
        except SystemExit as ended:
            if not isinstance(ended.__context__, BrokenPipeError):
                raise
            _forget_output()
            code, message = 141, ""  # as if SIGPIPE had ended it
        except Terminated as ended:
            code, message = ended.code, str(ended)
        except Exception as error:
            if "--debug" in args:
                traceback.print_exc()
            code, message = _explained(error)
        if message:
            typer.echo(f"pegasos: {message}", err=True)
        sys.exit(code if isinstance(code, int) else 0)


def _forget_output() -> None:
    """Nobody reads on: let nothing more be written, not even on the way out."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(nowhere, stream.fileno())


def _explained(error: Exception) -> tuple[int, str]:
    """Exit code and one line for an error."""
    if isinstance(error, typer.Abort):
        return 130, "interrupted"
    text = " ".join(str(error).split())
    if hasattr(error, "format_message"):  # Typer's own: a wrong option, command or value
        text = " ".join(error.format_message().split())
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "pegasos"
        return 2, f"{text.rstrip('.')} (see {command} --help)"
    if isinstance(error, OSError):
        named = f"{error.filename}: {error.strerror}" if error.filename else text
        return 3, named
    if isinstance(error, MemoryError):
        return 3, f"out of memory: {text}"
    if isinstance(error, DataError):
        return 2, text
    if isinstance(error, ValueError):
        return 2, as_typed(text)
    where = "a fault of the program: pegasos --debug COMMAND shows where"
    return 1, f"{type(error).__name__}: {text} ({where})"


app = typer.Typer(
    cls=OneLineErrors,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and end.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Large-margin classifiers that prove how good the answer is.

    Exit codes: 0 done, 2 bad input or usage, 3 disk, permission or memory, 130 interrupted.
    """
    if version:
        typer.echo(f"pegasos {pegasos.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for command in (
    *(train.train, predict.predict, evaluate.evaluate, threshold.threshold, inspect.inspect),
    *(compare.compare, convert.convert, warmup.warmup, demo.demo),
):
    app.command()(command)


def main() -> None:
    """Entry point of the command `pegasos`."""
    hear_signals()
    show_warnings()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # whatever the locale, names can be shown
            with contextlib.suppress(OSError):
                stream.reconfigure(errors="backslashreplace")
    app()


if __name__ == "__main__":
    main()
