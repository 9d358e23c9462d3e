"""Results as files that other programs open."""

from agg_core.exports.registry import (
    EXPORTS,
    Export,
    ExportInput,
    days_in,
    export_file_name,
)

__all__ = ["EXPORTS", "Export", "ExportInput", "days_in", "export_file_name"]
