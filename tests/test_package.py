"""What is installed: the wheel's content, what it asks for, and that it works away from here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import agg_core
from agg_core.base import extras, shipped
from agg_core.cli import app
from agg_core.cli.main import main
from agg_core.store.shipped_lab import TEACHING
from agg_core.store.shipped_runs import SHIPPED_RUNS
from tests.faults import refused

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
SHIPPED = ("app", "excel", "fit", "omx")


def pins(*files):
    lines = [line for f in files for line in (ROOT / f).read_text("utf-8").splitlines()]
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", "\n".join(lines), flags=re.MULTILINE))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index",
         "--disable-pip-version-check", "-q", "-w", str(folder), str(ROOT)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    """The wheel as it lies in an environment."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_every_dependency_has_a_pin_within_its_bounds():
    shipped_pins, all_pins = pins("requirements.txt"), pins(
        "requirements.txt", "requirements-dev.txt"
    )  # fmt: skip
    run_time = [*PROJECT["dependencies"], *(text for extra in SHIPPED for text in EXTRAS[extra])]
    for_tests = [*EXTRAS["dev"], *EXTRAS["dask"], *EXTRAS["login"]]
    for known, texts in ((shipped_pins, run_time), (all_pins, for_tests)):
        for requirement in map(Requirement, texts):
            assert requirement.specifier, requirement.name
            assert requirement.specifier.contains(known[requirement.name]), requirement.name


def test_every_pin_is_a_dependency():
    run_time = [*PROJECT["dependencies"], *(text for extra in SHIPPED for text in EXTRAS[extra])]
    assert {Requirement(text).name for text in run_time} == set(pins("requirements.txt"))
    for_tests = [*EXTRAS["dev"], *EXTRAS["dask"], *EXTRAS["login"]]
    assert {Requirement(text).name for text in for_tests} == set(pins("requirements-dev.txt"))


def test_the_modules_of_extras_are_those_of_the_project():
    for extra, modules in extras.EXTRAS.items():
        names = {Requirement(text).name.replace("-", "_") for text in EXTRAS[extra]}
        assert names == set(modules)


def test_the_wheel_holds_the_package_and_below_it_the_dashboard(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packaged = {n for n in names if ".dist-info/" not in n}
    assert {n.split("/")[0] for n in packaged} == {"agg_core"}
    app = {n.removeprefix("agg_core/_app/") for n in packaged if n.startswith("agg_core/_app/")}
    of_folders = {
        p.relative_to(ROOT).as_posix()
        for folder in ("pages", "ui")
        for p in (ROOT / folder).rglob("*")
        if p.suffix in (".py", ".png") and ROOT / "ui" / "flowmap" not in p.parents
    }
    runs = {p.relative_to(ROOT).as_posix() for p in (ROOT / "data" / "runs").glob("*/*")}
    assert {name.split("/")[2] for name in runs} == {*SHIPPED_RUNS, TEACHING}
    assert app == of_folders | runs | {
        "app.py", ".streamlit/config.toml", "data/README.md", "data/tokyo_commuters.parquet",
        "data/tokyo_outline.geojson", "data/ground.parquet", "docs/flows.png",
        "docs/flows-dark.png",
    }  # fmt: skip
    core = {p.relative_to(ROOT).as_posix() for p in (ROOT / "agg_core").rglob("*.py")}
    assert {n for n in packaged if not n.startswith("agg_core/_app/")} == core | {
        "agg_core/py.typed",
        "agg_core/plotting/flow_map.js",
        "agg_core/plotting/flow_map.licences.txt",
        "agg_core/study/lasting.json",
    }
    assert any(n.endswith("licenses/LICENSE") for n in names)
    assert f"agg_core-{agg_core.__version__}-py3-none-any.whl" == wheel.name


def test_an_installed_package_finds_its_data_from_any_folder(unpacked, tmp_path):
    program = (
        "import agg_core, sys; from agg_core.made.samples import load_outline, sample_path\n"
        "from agg_core.base.shipped import shipped\n"
        "from agg_core.store.shipped_runs import load_shipped\n"
        "print(sample_path()); print(shipped('app.py')); print(len(load_outline()['features']))\n"
        "print(load_shipped('sample-tokyo').n_individuals)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(unpacked)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    app = (unpacked / "agg_core" / "_app").resolve()
    assert done.stdout.split() == [
        str(app / "data" / "tokyo_commuters.parquet"), str(app / "app.py"), "262", "19779"
    ]  # fmt: skip


def test_in_a_checkout_the_dashboard_lies_beside_the_package():
    assert shipped.app_folder() == ROOT
    assert shipped.import_root() == ROOT


@pytest.fixture
def started(monkeypatch):
    """The commands that this process would have become."""
    commands = []
    monkeypatch.setattr(app.os, "execv", lambda program, words: commands.append(words))
    return commands


def test_app_starts_streamlit_with_further_options(started):
    assert main(["app", "--server.port", "8600"]) == 0
    assert started == [
        [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), "--server.port", "8600"]
    ]


def test_app_without_streamlit_says_what_to_type(started, monkeypatch, capsys):
    monkeypatch.setattr(app, "missing_of", lambda extra: ["streamlit"])
    assert main(["app"]) == 2
    assert "pip install 'agg-core[app]'" in capsys.readouterr().err
    assert started == []


def test_app_tells_its_options(started, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["app", "--help"])
    assert ended.value.code == 0
    assert "--server.port" in capsys.readouterr().out
    assert started == []


def test_a_missing_extra_is_a_sentence_and_another_missing_module_is_none():
    assert "agg-core[omx]" in str(extras.how_to_install("openmatrix"))
    assert "agg-core[app]" in str(extras.how_to_install("plotly.graph_objects"))
    assert extras.how_to_install("numpy") is None
    assert extras.how_to_install(None) is None


def test_version_is_said_once(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"agg-core {agg_core.__version__}\n"
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {agg_core.__version__}\n" in citation


def test_a_missing_file_of_the_package_is_one_sentence():
    with refused("shipped-file-missing", "data/none.parquet"):
        shipped.shipped("data/none.parquet")
