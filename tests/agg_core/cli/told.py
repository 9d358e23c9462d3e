"""What tests of commands share: options of quick runs, and what is printed taken apart."""

import json

import pytest

from agg_core.base.errors import InputError
from tests.agg_core import tiny

__all__ = [
    "DEFAULT",
    "HERE",
    "QUICK",
    "assert_matches",
    "only_sentence",
    "strict_json",
    "text_file",
]

HERE = ["--bbox", "139.0,35.0,139.3,35.3", "--grid", "3x3"]
DEFAULT = [*HERE, "--step", "1h", "--group-size", "5", "--iterations", "3", "--threshold", "2"]
"""A small study of which noise, prior and intervals are those that nobody asks for."""

QUICK = [*DEFAULT, "--noise", "given", "--strength", "given", "--replicates", "0"]
"""The same with nothing chosen and nothing simulated, where that is not what is looked at."""


def strict_json(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    assert text.count("\n") == 1
    return json.loads(text, parse_constant=refuse)


def text_file(tmp_path, text):
    path = tmp_path / "given.csv"
    path.write_text(text)
    return path


def only_sentence(err):
    """The one sentence on stderr, without the name of the program."""
    assert err.startswith("agg-core: ")
    assert err.endswith("\n")
    assert "Traceback" not in err
    sentence = err.removeprefix("agg-core: ").removesuffix("\n")
    assert tiny.is_one_sentence(sentence)
    return sentence


def assert_matches(text, pattern):
    with pytest.raises(InputError, match=pattern):
        raise InputError(text)
