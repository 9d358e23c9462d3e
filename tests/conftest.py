"""What every test can use: the real data beside the checkout, and what may be missing where."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
REQUIRED_UNDER_CI = ("browser", "real_data")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the users of real data, and write the required markers into the JUnit report."""
    for item in items:
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker("real_data")
        item.user_properties += [
            ("required", name) for name in REQUIRED_UNDER_CI if item.get_closest_marker(name)
        ]


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def unavailable() -> Callable[[str], NoReturn]:
    """Skip on a person's machine, fail under CI: call it with what is missing."""

    def skip_or_fail(reason: str) -> NoReturn:
        if os.environ.get("CI", "").lower() in ("", "0", "false"):
            pytest.skip(reason)
        pytest.fail(f"{reason} (required where CI is set)", pytrace=False)

    return skip_or_fail


@pytest.fixture(scope="session")
def shared_data(unavailable: Callable[[str], NoReturn]) -> Path:
    """Return the folder of real data that lies beside the checkout."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        unavailable("the real data is not there: no folder ../shared/data beside the repository")
    return folder
