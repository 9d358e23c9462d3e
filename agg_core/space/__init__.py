"""The kinds of grid: rows x columns, JIS mesh, H3 and people's own areas."""

from agg_core.space.areas import AreaGrid, AreaReport
from agg_core.space.hexagons import HexGrid
from agg_core.space.lattice import LatticeGrid
from agg_core.space.mesh import MeshGrid
from agg_core.space.rectangle import RectangleGrid

__all__ = ["AreaGrid", "AreaReport", "HexGrid", "LatticeGrid", "MeshGrid", "RectangleGrid"]
