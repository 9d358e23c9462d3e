"""Codes of the errors of reading: every one that is made here has one, in one form."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import agg_core.io

FOLDER = Path(agg_core.io.__file__).parent
FORM = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)+$")


def makings(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls that make an InputError, also as the part of a class of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("InputError"):
            yield node
        if isinstance(node, ast.ClassDef) and "InputError" in map(ast.unparse, node.bases):
            yield from (
                call
                for call in ast.walk(node)
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__"
            )


def code_of(call: ast.Call) -> str:
    """The code that a call spells out; empty where it spells out none."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    code = given.get("code", ast.Constant(""))
    return str(code.value) if isinstance(code, ast.Constant) else ""


def test_every_error_of_reading_has_a_code():
    codes = {
        f"{path.relative_to(FOLDER)}:{call.lineno}": code_of(call)
        for path in sorted(FOLDER.rglob("*.py"))
        for call in makings(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert len(codes) > 150, "the errors are found"
    wrong = {where: code for where, code in codes.items() if code and not FORM.match(code)}
    assert wrong == {}
    assert [where for where, code in codes.items() if code == ""] == []
