"""``agg-core app``: the dashboard, in a checkout or where the package is installed."""

from __future__ import annotations

import argparse
import os
import sys

from agg_core.base.errors import InputError
from agg_core.base.extras import how_to_install, missing_of
from agg_core.base.shipped import shipped

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say where the options come from; there are none of ours."""
    parser.usage = "agg-core app [OPTION ...]"
    parser.description = (
        "Start the dashboard in a browser. Options are those of `streamlit run`, for example "
        "--server.port 8600."
    )


def run(chosen: argparse.Namespace) -> int:
    """Become the server of the dashboard, with further words for Streamlit.

    Raises
    ------
    InputError
        If what the dashboard needs is not installed.
    """
    missing = missing_of("app")
    if missing:
        raise InputError(str(how_to_install(missing[0])), code="package-missing")
    command = [sys.executable, "-m", "streamlit", "run", str(shipped("app.py")), *chosen.words]
    _become(command)
    return 0


def _become(command: list[str]) -> None:
    """The server takes the place of this process, so that signals reach it."""
    os.execv(sys.executable, command)  # noqa: S606  # our own script
