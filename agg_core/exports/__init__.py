"""Results as files that other programs open."""

from agg_core.exports.registry import (
    EXPORTS,
    Export,
    ExportInput,
    check_limit,
    days_in,
    export_file_name,
)

__all__ = ["EXPORTS", "Export", "ExportInput", "check_limit", "days_in", "export_file_name"]
