"""Population flows learned from aggregate observations of individuals who follow one HMM.

The names that most people need, each loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agg_core.base.version import __version__

if TYPE_CHECKING:
    from agg_core.base.errors import InputError
    from agg_core.evidence.gates import GateFile
    from agg_core.io import read_trajectories
    from agg_core.io.counts import read_counts
    from agg_core.io.gates import read_gates
    from agg_core.io.opening import open_file
    from agg_core.learn.estimator import AggregateHMM
    from agg_core.made.samples import sample_path
    from agg_core.model.aggregates import Aggregates, aggregate
    from agg_core.model.emissions import grid_emission, near_emission, observe
    from agg_core.model.hmm import allowed_moves, distance_decay_transmat
    from agg_core.space.build import Grid
    from agg_core.store.codec import load_result, save_result
    from agg_core.study.front import learn_flows, sweep_flows
    from agg_core.study.result import FlowResult
    from agg_core.tables.flows import compare_flows, count_matrix, flow_matrix, flow_table
    from agg_core.tables.sequences import to_sequences

__all__ = [
    "AggregateHMM",
    "Aggregates",
    "FlowResult",
    "GateFile",
    "Grid",
    "InputError",
    "__version__",
    "aggregate",
    "allowed_moves",
    "compare_flows",
    "count_matrix",
    "distance_decay_transmat",
    "flow_matrix",
    "flow_table",
    "grid_emission",
    "learn_flows",
    "load_result",
    "near_emission",
    "observe",
    "open_file",
    "read_counts",
    "read_gates",
    "read_trajectories",
    "sample_path",
    "save_result",
    "sweep_flows",
    "to_sequences",
]

_HOMES = {
    "AggregateHMM": "agg_core.learn.estimator",
    "Aggregates": "agg_core.model.aggregates",
    "FlowResult": "agg_core.study.result",
    "GateFile": "agg_core.evidence.gates",
    "Grid": "agg_core.space.build",
    "InputError": "agg_core.base.errors",
    "aggregate": "agg_core.model.aggregates",
    "allowed_moves": "agg_core.model.hmm",
    "compare_flows": "agg_core.tables.flows",
    "count_matrix": "agg_core.tables.flows",
    "distance_decay_transmat": "agg_core.model.hmm",
    "flow_matrix": "agg_core.tables.flows",
    "flow_table": "agg_core.tables.flows",
    "grid_emission": "agg_core.model.emissions",
    "learn_flows": "agg_core.study.front",
    "load_result": "agg_core.store.codec",
    "near_emission": "agg_core.model.emissions",
    "observe": "agg_core.model.emissions",
    "open_file": "agg_core.io.opening",
    "read_counts": "agg_core.io.counts",
    "read_gates": "agg_core.io.gates",
    "read_trajectories": "agg_core.io",
    "sample_path": "agg_core.made.samples",
    "save_result": "agg_core.store.codec",
    "sweep_flows": "agg_core.study.front",
    "to_sequences": "agg_core.tables.sequences",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'agg_core' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
