"""The command line: the same functions as the pages, figures as JSON.

``agg-core inspect FILE`` says what a file holds, ``agg-core learn FILE ...`` runs a study,
``agg-core flows FOLDER --format KEY`` writes a saved one as a file for other programs,
``agg-core evidence FOLDER`` sums its flows over screenlines and areas and checks them, ``agg-core
changes FOLDER`` says what differs between days, times or runs,
``agg-core pull FOLDER`` how far flows move when a source is left out,
``agg-core app`` starts the dashboard, ``agg-core serve`` starts it for several people after a look
at what would be unsafe, ``agg-core warm`` compiles the learners before their first
use, ``agg-core bench accuracy`` repeats the paper's experiments.
The word ``sample`` in place of FILE is the sample city. ``python -m agg_core`` does the same. Exit
code 2 and one sentence when input or settings cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

import agg_core
from agg_core.base.errors import InputError
from agg_core.base.extras import how_to_install

__all__ = ["COMMANDS", "Command", "CommandModule", "main", "program"]

EXTENTS = ("--bbox", "--grid-box", "--within")
"""Options whose value may begin with the minus of a western longitude."""


class CommandModule(Protocol):
    """What the module of a command offers."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""

    def run(self, chosen: argparse.Namespace) -> int:
        """Do what the command says; returns the exit code."""


@dataclass(frozen=True)
class Command:
    """What a command does, in words, and the module of `agg_core.cli` that does it.

    A command that ``passes_on`` hands its ``words`` to another program as they are.
    """

    about: str
    module: str
    passes_on: bool = False

    def load(self) -> CommandModule:
        """The module, imported when it is first asked for."""
        return cast(CommandModule, import_module(f"agg_core.cli.{self.module}"))


COMMANDS = {
    "app": Command("start the dashboard", "app", passes_on=True),
    "serve": Command("start the dashboard for several people", "serve", passes_on=True),
    "inspect": Command("say what a file holds and what was guessed", "inspect"),
    "counts": Command("count people by cell and step, in files of any size", "counts"),
    "trips": Command("count trips of nobody as an origin-destination table", "trips"),
    "learn": Command("learn flows from people in groups, or from counts", "learn"),
    "flows": Command("write a saved result as a file of some format", "flows"),
    "evidence": Command("sum flows over lines and areas, and check them", "evidence"),
    "changes": Command("say which flows differ between days, times or runs", "changes"),
    "pull": Command("say how far flows move when a source is left out", "pull"),
    "bench": Command("measure the learners on made data", "bench"),
    "warm": Command("compile the learners for this machine, once", "warm"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = _joined(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except InputError as fault:
        sentence = str(fault).removesuffix(".") + f" ({fault.option})." if fault.option else fault
        print(f"agg-core: {sentence}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as fault:
        told = how_to_install(fault.name)
        if told is None:
            raise
        print(f"agg-core: {told}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("agg-core: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, for example `| head`
        sys.stderr.close()
        return 0


def _joined(arguments: Sequence[str]) -> list[str]:
    """``--bbox -74.1,...`` as one word: argparse takes a western longitude for an option."""
    words: list[str] = []
    for word in arguments:
        if words and words[-1] in EXTENTS:
            words[-1] = f"{words[-1]}={word}"
        else:
            words.append(word)
    return words


def _run(words: Sequence[str]) -> int:
    asked = COMMANDS.get(words[0]) if words else None
    if asked is None:
        _parser().parse_args(words)
        raise AssertionError("argparse ends where no command is asked for")
    module = asked.load()
    if asked.passes_on and not {"-h", "--help"} & set(words):
        return module.run(argparse.Namespace(words=words[1:]))
    return module.run(_parser(words[0], module).parse_args(words))


def _parser(asked: str = "", module: CommandModule | None = None) -> argparse.ArgumentParser:
    """All commands, and the options of the one that is asked for."""
    parser = argparse.ArgumentParser(prog="agg-core", description=__doc__)
    version = f"agg-core {agg_core.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        of_command = commands.add_parser(name, help=command.about)
        if name == asked and module is not None:
            module.add_options(of_command)
    return parser


def program() -> int:
    """`main` as a process of its own, which may set up how its threads wait."""
    return main()
