"""The reference of what ``import agg_core`` offers, from its docstrings: ``make docs``.

It writes docs/api.md, or with ``--check`` says by its exit code whether that is up to date.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import agg_core

__all__ = ["page"]

PATH = Path(__file__).with_name("api.md")
LINE = 90
METHODS = (FunctionType, classmethod, staticmethod)
PROPERTIES = (property, cached_property)
LISTED = ("Parameters", "Attributes", "Raises")
"""Sections of a docstring whose lines without an indent are names."""

HEAD = """# What `import agg_core` offers

Made from the docstrings by `make docs`; change those, not this page. Each name is loaded when it is
first used. Whole programs are in [docs/examples](examples).
"""


def page() -> str:
    """All of docs/api.md."""
    names = [name for name in agg_core.__all__ if name != "__version__"]
    links = "\n".join(f"- [`{name}`](#{name.lower()})" for name in names)
    parts = [_entry(name, getattr(agg_core, name)) for name in names]
    return "\n\n".join([f"{HEAD}\n{links}", *parts]) + "\n"


def _entry(name: str, value: Any) -> str:
    parts = [f"## {name}", _signature(name, value), _rendered(value)]
    if inspect.isclass(value):
        for member_name, member in sorted(_members(value).items()):
            is_property = not callable(member)
            signature = "" if is_property else _signature(member_name, member)
            heading = f"### {name}.{member_name}" + " (property)" * is_property
            parts += [heading, signature, _rendered(member)]
    return "\n\n".join(part for part in parts if part)


def _members(kind: type) -> dict[str, Any]:
    """Public methods and properties by name, those of other packages not among them."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.split(".")[0] == "agg_core":
            found |= {name: vars(base)[name] for name in vars(base) if not name.startswith("_")}
    return {
        name: getattr(kind, name) if isinstance(member, METHODS) else member
        for name, member in found.items()
        if isinstance(member, (*METHODS, *PROPERTIES))
    }


def _signature(name: str, value: Callable[..., Any]) -> str:
    """What is typed to call it, an argument a line where one line is too short."""
    if inspect.isabstract(value):
        return ""
    signature = inspect.signature(value)
    arguments, kinds = [], inspect.Parameter
    for parameter in signature.parameters.values():
        if parameter.kind is kinds.KEYWORD_ONLY and not any(a.startswith("*") for a in arguments):
            arguments.append("*")
        if parameter.name != "self":
            arguments.append(str(parameter))
    returns = signature.replace(parameters=[])
    end = "" if inspect.isclass(value) else str(returns).removeprefix("()")
    text = f"{name}({', '.join(arguments)}){end}"
    if len(text) > LINE:
        text = f"{name}(\n" + "".join(f"    {a},\n" for a in arguments) + f"){end}"
    # Annotations are text, which Python shows in quotes.
    return "```python\n" + re.sub(r"(: |-> )'([^'\n]*)'", r"\1\2", text) + "\n```"


def _rendered(value: Any) -> str:
    """A docstring as Markdown."""
    text = (inspect.getdoc(value) or "").replace("``", "`")
    # Odd parts are the headings of sections.
    first, *rest = re.split(r"^(\w+)\n-+\n", text, flags=re.MULTILINE)
    parts = [*_paragraphs(first)]
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        lines, *after = body.strip("\n").split("\n\n", 1)
        parts += [
            f"**{heading}**",
            _items(lines, heading == "Parameters") if heading in LISTED else lines,
        ]
        parts += [paragraph for text in after for paragraph in _paragraphs(text)]
    return "\n\n".join(parts)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        yield f"```python\n{paragraph}\n```" if paragraph.startswith(">>>") else paragraph


def _items(lines: str, types: bool) -> str:
    """Names with what is said of them, as a list; ``types`` says that a colon is before a type."""
    items: list[str] = []
    for line in lines.splitlines():
        if line.startswith(" "):
            items[-1] += f" {line.strip()}"
            continue
        names, *about = line.split(" : ", 1)
        if re.fullmatch(r"[*\w]+(, [*\w]+)*", names):
            names = ", ".join(f"`{name}`" for name in names.split(", "))
        words = "".join(f" ({kind})" if types else f": {kind}" for kind in about)
        items.append(f"- {names}{words}" + ":" * (types or not about))
    return "\n".join(items)


def main(arguments: list[str]) -> int:
    """Write the page, or compare it with what is there; the exit code is 1 if it differs."""
    if arguments == ["--check"]:
        return int(PATH.read_text(encoding="utf-8") != page())
    PATH.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
