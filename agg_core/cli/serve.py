"""``agg-core serve``: the dashboard for several people, after a look at what would be unsafe."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from agg_core.base.errors import InputError
from agg_core.base.logs import FLOWS_LOG, JSON_LINES
from agg_core.base.serving import Finding, Machine, ServerOptions, examine_server
from agg_core.base.shipped import app_folder
from agg_core.cli import app

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add our own options; further words go to Streamlit."""
    parser.usage = "agg-core serve [--check] [--json] [OPTION ...]"
    parser.description = (
        "Start the dashboard for several people (docs/serving.md). What is unsafe is said first, "
        "one line each; exit code 2 if it is not started for that. Further options are those of "
        "`streamlit run`, for example --server.port 8600."
    )
    parser.add_argument("--check", action="store_true", help="look at the options, start nothing")
    parser.add_argument("--json", action="store_true", help="say what is unsafe as JSON")


def run(chosen: argparse.Namespace) -> int:
    """Say what is unsafe, and become the server unless that is refused or not asked for.

    Raises
    ------
    InputError
        If options cannot be read, or what the dashboard needs is not installed.
    """
    ours, words = _apart(chosen.words)
    options = ServerOptions.found(words, os.environ, _folders())
    found = examine_server(options, Machine.here(os.environ))
    refused = any(finding.refused for finding in found)
    _tell(found, refused, as_json="--json" in ours, to_check="--check" in ours)
    if refused:
        return 2
    if "--check" in ours:
        return 0
    os.environ.setdefault(FLOWS_LOG, JSON_LINES)
    return app.run(argparse.Namespace(words=words))


def _apart(words: list[str]) -> tuple[set[str], list[str]]:
    """Our own words, and those for Streamlit."""
    own = {"--check", "--json"}
    return own & set(words), [word for word in words if word not in own]


def _folders() -> list[Path]:
    """Where Streamlit reads its options: of the user, of this folder, of the dashboard.

    Raises
    ------
    InputError
        If the user has no home folder.
    """
    try:
        home = Path.home()
    except RuntimeError as fault:
        raise InputError(
            "The user has no home folder; set HOME to a folder that can be read.", code="no-home"
        ) from fault
    return [at / ".streamlit" for at in (home, Path.cwd(), app_folder())]


def _tell(found: tuple[Finding, ...], refused: bool, *, as_json: bool, to_check: bool) -> None:
    if as_json:
        told = {"refused": refused, "findings": [finding.to_dict() for finding in found]}
        print(json.dumps(told), flush=True)
        return
    for finding in found:
        kind = "refused" if finding.refused else "note"
        print(f"{kind}: {finding.sentence} [{finding.code}]", file=sys.stderr, flush=True)
    if to_check and not found:
        print("Nothing unsafe was found.")
