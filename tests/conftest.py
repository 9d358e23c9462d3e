"""What every test can use: the real data beside the checkout, and what may be missing where."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from xdist.scheduler import LoadScopeScheduling

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    # Read when a library is loaded, here and in what the tests start. Threads of small steps on
    # cores that another worker uses wait for each other for longer than they work; what is about
    # threads has a process of its own (`tests/threads.py`).
    os.environ[threads] = "1"

REPOSITORY = Path(__file__).resolve().parents[1]
REQUIRED_UNDER_CI = ("browser", "real_data")
BROWSER = "tests/browser/"
LONG = (
    BROWSER, "tests/agg_core/learn/", "tests/agg_core/counts/", "tests/golden/", "tests/pages/",
    "tests/agg_core/study/", "tests/test_readme.py", "tests/test_docs.py", "tests/benchmarks/",
)  # fmt: skip
"""What comes first: what takes longest, so that no worker ends with it alone, and what compiles the
kernels that others need, so that two do not compile the same."""


class ByFile(LoadScopeScheduling):
    """A file goes to one worker with its fixtures; all browser tests share one, and its server."""

    def _split_scope(self, nodeid: str) -> str:
        return BROWSER if nodeid.startswith(BROWSER) else nodeid.split("::", maxsplit=1)[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    config.option.loadscopereorder = False  # the order is that of `LONG`
    return ByFile(config, log)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Packed bytes hold the time at which they were packed, and both workers need one name."""
    return argname if isinstance(val, bytes) and not val.isascii() else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark the users of real data, write required markers into the JUnit report, and sort.

    Marks come before pytest leaves out what ``-m`` does not ask for, the order after it.
    """
    for item in items:
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker("real_data")
        item.user_properties += [
            ("required", name) for name in REQUIRED_UNDER_CI if item.get_closest_marker(name)
        ]
    yield
    # A stable sort: within a file tests stay as they are written.
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    turns = [turn for turn, folder in enumerate(LONG) if item.nodeid.startswith(folder)]
    return turns[0] if turns else len(LONG)


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
