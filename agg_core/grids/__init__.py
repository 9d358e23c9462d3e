"""The kinds of grid: rows x columns, JIS mesh, H3 and people's own areas."""

from agg_core.grids.areas import AreaGrid, AreaReport
from agg_core.grids.hexagons import HexGrid
from agg_core.grids.lattice import LatticeGrid
from agg_core.grids.mesh import MeshGrid
from agg_core.grids.rectangle import RectangleGrid

__all__ = ["AreaGrid", "AreaReport", "HexGrid", "LatticeGrid", "MeshGrid", "RectangleGrid"]
