"""Where the files that come with the package are, in a checkout and where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from agg_core.base.errors import InputError

__all__ = ["app_folder", "import_root", "shipped"]


def import_root() -> Path:
    """The folder from which ``import agg_core`` finds this package."""
    spec = find_spec("agg_core")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().parents[1]


def app_folder() -> Path:
    """The folder of ``app.py``, ``pages``, ``data`` and pictures.

    A wheel holds it within the package, a checkout beside it.
    """
    installed = import_root() / "agg_core" / "_app"
    return installed if installed.is_dir() else import_root()


def shipped(name: str) -> Path:
    """A file below `app_folder`, such as ``data/tokyo_outline.geojson``.

    Raises
    ------
    InputError
        If it is missing.
    """
    path = app_folder() / name
    if not path.is_file():
        raise InputError(
            f"The shipped file {name} is missing; install agg-core again, or in a checkout make it "
            "as data/README.md says.",
            code="shipped-file-missing",
        )
    return path
