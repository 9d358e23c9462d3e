"""A file of people, and the command line run in this process."""

import geopandas as gpd
import pytest
from shapely.geometry import box

from agg_core.cli import main as command_line
from tests.agg_core import tiny
from tests.warm import fork_from_now_on


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """A process that reads a workbook is forked: these tests are not about its start."""
    fork_from_now_on(monkeypatch)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "people.csv"
    tiny.frame(tiny.day_states()).to_csv(path, index=False)
    return str(path)


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, what it printed, and what it complained of."""

    def execute(*arguments):
        try:
            code = command_line.main([str(a) for a in arguments])
        except SystemExit as ended:
            code = ended.code
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return execute


@pytest.fixture
def areas_file(tmp_path):
    zones = gpd.GeoDataFrame(
        {"zone": ["西", "東", "far"], "no": [1, 1, 2]},
        geometry=[box(139, 35, 139.2, 35.3), box(139.15, 35, 139.3, 35.3), box(150, 50, 151, 51)],
        crs="EPSG:4326",
    )
    path = tmp_path / "zones.gpkg"
    zones.to_crs("EPSG:6677").to_file(path)
    return path
