"""What makes a server of the dashboard unsafe for several people, found before it starts."""

from __future__ import annotations

import math
import os
import shutil
import stat
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from agg_core.base.disk import folder_named, is_folder
from agg_core.base.errors import InputError
from agg_core.base.memory import machine_bytes

__all__ = [
    "DEFAULTS",
    "JOB_HOURS",
    "Finding",
    "Machine",
    "ServerOptions",
    "examine_server",
    "longest_job_s",
    "variable",
]

MEGABYTE = 1024 * 1024

DEFAULTS: Mapping[str, Any] = {
    "server.address": None,
    "server.allowedHosts": (),
    "server.enableXsrfProtection": True,
    "server.enableCORS": True,
    "server.maxUploadSize": 200,
    "client.showErrorDetails": "full",
}
"""Options of Streamlit that are looked at, as they are where nobody says otherwise."""

JOB_HOURS, MOST_HOURS = "FLOWS_JOB_HOURS", 10_000
"""The variable that says how many hours a job may be told to take, and the most that it may say."""

SECRETS = "secrets.toml"
"""Beside Streamlit's options: its table ``auth`` says how people sign in."""


@dataclass(frozen=True)
class Finding:
    """Something unsafe, and what to do; ``code`` names it, ``refused`` if no server may start."""

    code: str
    refused: bool
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"code": self.code, "refused": self.refused, "sentence": self.sentence}


@dataclass(frozen=True)
class ServerOptions:
    """Options of Streamlit that decide who reaches a server and what it tells.

    ``max_upload_mb`` is megabytes of one file; ``address`` is None where it listens to all.
    """

    address: str | None
    allowed_hosts: tuple[str, ...]
    xsrf_protection: bool
    same_origin_only: bool
    max_upload_mb: float
    error_details: str
    has_login: bool = False

    @classmethod
    def found(
        cls, words: Sequence[str], environment: Mapping[str, str], folders: Iterable[Path]
    ) -> ServerOptions:
        """What holds: words of the command line before the environment, before files of folders.

        Of the ``folders``, each with a ``config.toml`` or none, later ones come first.

        Raises
        ------
        InputError
            If a file of options cannot be read, or a number is none.
        """
        values = dict(DEFAULTS)
        has_login = False
        for folder in folders:
            tables = _table(folder / "config.toml")
            has_login = has_login or "auth" in _table(folder / SECRETS)
            for key in DEFAULTS:
                section, _, name = key.partition(".")
                table = tables.get(section, {})
                if isinstance(table, dict) and name in table:
                    values[key] = table[name]
        for key in DEFAULTS:
            told = environment.get(variable(key))
            if told is not None:
                values[key] = told
        values |= _given(words)
        return cls(
            address=values["server.address"] or None,
            allowed_hosts=_texts(values["server.allowedHosts"]),
            xsrf_protection=_is_on(values["server.enableXsrfProtection"]),
            same_origin_only=_is_on(values["server.enableCORS"]),
            max_upload_mb=_number(values["server.maxUploadSize"]),
            error_details=str(values["client.showErrorDetails"]).lower(),
            has_login=has_login,
        )

    @property
    def listens_to_others(self) -> bool:
        """Whether other machines reach the server without a program between."""
        return not _is_local(self.address or "0.0.0.0")  # noqa: S104  # this is what none means

    @property
    def open_to_others(self) -> bool:
        """The same, or by a proxy, whose names it then answers to."""
        return self.listens_to_others or not all(map(_is_local, self.allowed_hosts))


@dataclass(frozen=True)
class Machine:
    """What a server runs on: who runs it, its folder for runs, bytes that are free, and how many
    hours a job may take."""

    is_root: bool
    home: str
    free_memory: int | None
    job_hours: str = ""

    @classmethod
    def here(cls, environment: Mapping[str, str]) -> Machine:
        """This machine, with the folder that ``FLOWS_HOME`` names, and what `JOB_HOURS` says."""
        return cls(
            is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
            home=environment.get("FLOWS_HOME", ""),
            free_memory=_free_memory(),
            job_hours=environment.get(JOB_HOURS, ""),
        )


def examine_server(options: ServerOptions, machine: Machine) -> tuple[Finding, ...]:
    """All that is unsafe, what is refused first; none where all is well."""
    found = [
        *_of_network(options), *_of_home(machine), *_of_room(options, machine),
        *_of_jobs(options, machine),
    ]  # fmt: skip
    if machine.is_root:
        found.append(
            Finding(
                "root-user", True, "The server would run as root: start it as a user of its own."
            )
        )
    return tuple(sorted(found, key=lambda finding: not finding.refused))


def _of_network(options: ServerOptions) -> Iterable[Finding]:
    hosts = options.allowed_hosts
    if options.open_to_others and (not hosts or "*" in hosts):
        yield Finding(
            "hosts-not-limited", True,
            "Other machines reach the server by any name: list the host names that people use in "
            "server.allowedHosts.",
        )  # fmt: skip
    elif options.listens_to_others and all(map(_is_local, hosts)):
        yield Finding(
            "hosts-of-this-machine", False,
            "The server listens to other machines and answers to the names of this one alone: add "
            "the host names that people use to server.allowedHosts.",
        )  # fmt: skip
    if not options.xsrf_protection:
        yield Finding(
            "xsrf-protection-off", True,
            "Other sites could upload files in a person's name: set server.enableXsrfProtection "
            "to true.",
        )  # fmt: skip
    if not options.same_origin_only:
        yield Finding(
            "any-origin-allowed", True,
            "Pages of other sites could talk to the server: set server.enableCORS to true.",
        )  # fmt: skip
    if options.error_details not in ("none", "false"):
        yield Finding(
            "error-details-shown", True,
            "Faults would show code and data on the page: set client.showErrorDetails to none.",
        )  # fmt: skip
    if options.open_to_others and not options.has_login:
        yield Finding(
            "no-login", False,
            "Whoever reaches the server uses it without a name: let the proxy ask who it is, or "
            "fill the table auth of secrets.toml (docs/serving.md).",
        )  # fmt: skip


def _of_home(machine: Machine) -> Iterable[Finding]:
    home = folder_named(machine.home)
    if not machine.home or not home.is_absolute() or not is_folder(home):
        yield Finding(
            "home-missing", True,
            "There is no folder for runs: make one and name it, from the root on, by FLOWS_HOME.",
        )  # fmt: skip
        return
    if not os.access(home, os.W_OK | os.X_OK):
        yield Finding(
            "home-not-writable", True,
            "The folder that FLOWS_HOME names cannot be written: give it to the user who serves.",
        )  # fmt: skip
    if stat.S_IMODE(home.stat().st_mode) & 0o077:
        yield Finding(
            "home-open", True,
            "Other users of this machine may look into the folder that FLOWS_HOME names: take "
            "their rights away (chmod 700).",
        )  # fmt: skip


def _of_room(options: ServerOptions, machine: Machine) -> Iterable[Finding]:
    most = options.max_upload_mb * MEGABYTE
    if machine.free_memory is not None and most > machine.free_memory:
        yield Finding(
            "upload-beyond-memory", True,
            f"One upload may be larger than the free memory of "
            f"{machine.free_memory // MEGABYTE:,} MB: set server.maxUploadSize below that.",
        )  # fmt: skip
    try:
        free = shutil.disk_usage(machine.home or os.curdir).free
    except OSError:  # a folder that is missing is told already
        return
    if most > free:
        yield Finding(
            "upload-beyond-disk", True,
            f"One upload may be larger than the {free // MEGABYTE:,} MB that are free on the disk: "
            "set server.maxUploadSize below that, or make room.",
        )  # fmt: skip


def _of_jobs(options: ServerOptions, machine: Machine) -> Iterable[Finding]:
    try:
        longest = longest_job_s({JOB_HOURS: machine.job_hours})
    except InputError as fault:
        yield Finding("wrong-job-hours", True, str(fault))
        return
    if longest is None and options.open_to_others:
        yield Finding(
            "job-time-not-limited", False,
            f"Work may take as long as it takes, and others wait: set {JOB_HOURS} to the hours "
            "that a job may be told to take.",
        )  # fmt: skip


def longest_job_s(environment: Mapping[str, str]) -> float | None:
    """Seconds that a job may be told to take, as `JOB_HOURS` says; None if it says nothing.

    Raises
    ------
    InputError
        If it is no number above 0.
    """
    text = environment.get(JOB_HOURS, "").strip()
    if not text:
        return None
    try:
        hours = float(text)
    except ValueError:
        hours = math.nan
    if not 0 < hours <= MOST_HOURS:
        raise InputError(
            f"{JOB_HOURS} is no number of hours: whoever runs the server must set it to one above "
            f"0, {MOST_HOURS:,} at most.",
            code="wrong-job-hours",
        )
    return 3600 * hours


# -------------------------------------------------------------------- how options are said


def variable(key: str) -> str:
    """The variable of the environment that says an option: STREAMLIT_SERVER_ENABLE_CORS."""
    section, _, name = key.partition(".")
    words = ""
    for before, letter in zip(" " + name, name + " ", strict=True):
        words += "_" if letter.isupper() and before.islower() else ""
        words += letter
    return f"STREAMLIT_{section}_{words.strip()}".upper()


def _given(words: Sequence[str]) -> dict[str, Any]:
    """Options of the command line: ``--server.port 8600``, ``--server.port=8600``."""
    by_flag = {f"--{key}".lower(): key for key in DEFAULTS}
    given: dict[str, Any] = {}
    for i, word in enumerate(words):
        if word == "--":
            break
        flag, equals, text = word.partition("=")
        key = by_flag.get(flag.lower())
        if key is None:
            continue
        if not equals:
            text = words[i + 1] if i + 1 < len(words) else ""
        given[key] = (*given.get(key, ()), text) if key == "server.allowedHosts" else text
    return given


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as fault:
        raise InputError(
            f"{path.parent.name}/{path.name} cannot be read; correct it or take it away.",
            code="options-unreadable",
        ) from fault


def _is_on(value: Any) -> bool:
    return str(value).strip().lower() in ("true", "1", "yes", "y", "on", "t")


def _texts(value: Any) -> tuple[str, ...]:
    texts = value.split(",") if isinstance(value, str) else value
    return tuple(part for text in texts for part in str(text).replace(",", " ").split())


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as fault:
        raise InputError(
            "server.maxUploadSize is no number; give the megabytes of one file.",
            code="upload-size-not-a-number",
        ) from fault


def _is_local(host: str) -> bool:
    """Whether a name or address is that of this machine for itself."""
    if host == "localhost" or host.startswith("unix://"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _free_memory() -> int | None:
    """Bytes that can be had without others losing theirs; None where the system does not tell."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        (line,) = (each for each in text.splitlines() if each.startswith("MemAvailable:"))
        return min(int(line.split()[1]) * 1024, machine_bytes())  # a container may have less
    except (OSError, ValueError):
        return None
