"""The dashboard started from the command line, in a checkout or where the package is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from agg_core.base.errors import InputError
from agg_core.base.extras import how_to_install, missing_of
from agg_core.base.shipped import shipped

__all__ = ["serve"]

USAGE = """usage: agg-core app [OPTION ...]

Start the dashboard in a browser. Options are those of `streamlit run`, for example
--server.port 8600."""


def serve(arguments: Sequence[str]) -> int:
    """Become the server of the dashboard, with further arguments for Streamlit.

    Raises
    ------
    InputError
        If what the dashboard needs is not installed.
    """
    if {"-h", "--help"} & set(arguments):
        print(USAGE)
    else:
        missing = missing_of("app")
        if missing:
            raise InputError(str(how_to_install(missing[0])))
        command = [sys.executable, "-m", "streamlit", "run", str(shipped("app.py")), *arguments]
        # The server takes the place of this process, so that signals reach it.
        os.execv(sys.executable, command)  # noqa: S606  # our own script
    return 0
