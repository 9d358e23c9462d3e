"""The files of deploy/ and docs/serving.md name options, paths and headers that there are."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest
from streamlit import config

from agg_core.base import serving
from agg_core.cli.main import COMMANDS
from ui.served import HEADERS

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
SERVING = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
HOST = "flows.example.org"


def text(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def unit() -> ConfigParser:
    """The unit; of settings that are there several times the last."""
    found = ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    found.optionxform = str
    found.read_string(text("flows.service"))
    return found


@pytest.mark.parametrize("name", ["Containerfile", "flows.service", "../docs/serving.md"])
def test_options_of_streamlit_are_known(name):
    known = {option.env_var for option in config._config_options_template.values()}
    named = set(re.findall(r"STREAMLIT_[A-Z_]+", text(name)))
    assert named
    assert named <= known


def test_options_in_the_guide_are_known():
    named = set(re.findall(r"`(?:--)?((?:server|client)\.[a-zA-Z]+)", SERVING))
    assert named
    assert named <= config._config_options_template.keys()


def test_the_guide_has_a_row_for_every_finding_and_no_other():
    codes = set(re.findall(r'Finding\(\s*"([a-z-]+)"', Path(serving.__file__).read_text("utf-8")))
    rows = set(re.findall(r"^\| `([a-z-]+)` \|", SERVING, flags=re.MULTILINE))
    assert len(codes) == 14
    assert rows == codes


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile"])
def test_proxies_say_the_headers_of_the_server_and_take_its_uploads(name):
    proxy = text(name)
    for header, value in HEADERS.items():
        assert re.search(rf'{header} "?{re.escape(value)}"?', proxy), header
    options = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    (size,) = re.findall(r"(?:client_max_body_size|max_size) (\d+)", proxy)
    assert int(size) > options["server"]["maxUploadSize"]
    assert HOST in proxy
    assert "127.0.0.1:8501" in proxy
    assert proxy.count("{") == proxy.count("}")


def test_caddy_says_each_header_once():
    taken_off = set(re.findall(r"header_down -(\S+)", text("Caddyfile")))
    assert taken_off >= HEADERS.keys()


def test_nginx_leads_to_https_by_its_own_name_alone():
    (way,) = re.findall(r"return 301 (\S+);", text("nginx.conf"))
    assert way == f"https://{HOST}$request_uri"


def test_nginx_hands_websockets_on_and_logs_no_query():
    proxy = text("nginx.conf")
    assert "proxy_set_header Upgrade $http_upgrade;" in proxy
    (logged,) = re.findall(r"log_format flows '(.*)';", proxy)
    assert not re.search(r"\$(request|request_uri|args|uri|query_string|http_referer)\b", logged)


def test_the_unit_serves_as_a_user_of_its_own():
    service = unit()["Service"]
    assert service["User"] == "flows"
    assert " -m agg_core serve " in service["ExecStart"]
    assert "serve" in COMMANDS
    assert service["StateDirectoryMode"] == "0700"
    assert {"NoNewPrivileges", "ProtectSystem", "PrivateTmp", "MemoryMax"} <= service.keys()
    assert "MemoryDenyWriteExecute" not in service  # the learners are compiled
    assert "Environment=FLOWS_HOME=/var/lib/flows\n" in text("flows.service")


def test_systemd_knows_every_setting_of_the_unit(tmp_path):
    systemd = shutil.which("systemd-analyze")
    if systemd is None:
        pytest.skip("systemd-analyze is not there")
    here = tmp_path / "flows.service"
    here.write_text(
        re.sub(r"=(-?)/srv/flows/.venv/bin/python", r"=\1/bin/true", text("flows.service"))
    )
    done = subprocess.run(
        [systemd, "verify", "--man=no", str(here)], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "flows.service" in line] == []


def test_the_container_is_pinned_private_and_watched():
    lines = text("Containerfile")
    (base,) = re.findall(r"^FROM (\S+)$", lines, flags=re.MULTILINE)
    assert re.fullmatch(r"python:3\.1[123]\.\d+-slim-\w+", base)
    assert re.findall(r"^USER (\w+)$", lines, flags=re.MULTILINE)[-1] == "flows"
    assert re.search(r"^VOLUME /var/lib/flows$", lines, flags=re.MULTILINE)
    assert "FLOWS_HOME=/var/lib/flows" in lines
    assert re.search(r"^HEALTHCHECK .*\n.*/_stcore/health", lines, flags=re.MULTILINE)
    for copied in re.findall(r"^COPY (\S+) \./$", lines, flags=re.MULTILINE):
        assert (ROOT / copied).exists()


def test_secrets_of_this_machine_stay_out_of_the_container():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert ".streamlit/secrets.toml" in ignored


def test_security_names_tests_that_there_are():
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 8
    for name in named:
        assert (ROOT / name).exists(), name
