"""Packages that come only with a part of the installation, and what to type when one is missing."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["EXTRAS", "how_to_install", "missing_of"]

EXTRAS = {
    "app": ("plotly", "pydeck", "streamlit"),
    "dask": ("dask", "distributed"),
    "excel": ("python_calamine",),
    "fit": ("fitdecode",),
    "login": ("authlib", "httpx"),
    "omx": ("openmatrix",),
}
"""Modules by the name of the extra that installs them."""


def missing_of(extra: str) -> list[str]:
    """Modules of an extra that are not installed."""
    return [name for name in EXTRAS[extra] if find_spec(name) is None]


def how_to_install(module: str | None) -> str | None:
    """What to type for a module that could not be imported; None if it belongs to no extra."""
    package = (module or "").split(".")[0]
    for extra, modules in EXTRAS.items():
        if package in modules:
            return f"This needs {package}; install it with: pip install 'agg-core[{extra}]'"
    return None
