"""``python -m agg_core``: the command line."""

import sys

from agg_core.cli.main import program

__all__ = ["program"]

if __name__ == "__main__":
    sys.exit(program())
