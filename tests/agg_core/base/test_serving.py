from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit import config

from agg_core.base import serving
from agg_core.base.serving import (
    DEFAULTS,
    JOB_HOURS,
    Machine,
    ServerOptions,
    examine_server,
    longest_job_s,
    variable,
)
from agg_core.base.shipped import app_folder
from tests.faults import refused

SAFE = ServerOptions("127.0.0.1", ("localhost",), True, True, 0.001, "none")
OPEN = replace(SAFE, address="0.0.0.0", allowed_hosts=("flows.example.org",), has_login=True)


@pytest.fixture
def machine(tmp_path) -> Machine:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return Machine(is_root=False, home=str(home), free_memory=2**33, job_hours="24")


def codes(options: ServerOptions, machine: Machine) -> dict[str, bool]:
    return {finding.code: finding.refused for finding in examine_server(options, machine)}


def test_nothing_is_said_of_what_is_safe(machine):
    assert codes(SAFE, machine) == {}
    assert codes(OPEN, machine) == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"allowed_hosts": ()}, {"hosts-not-limited": True}),
        ({"allowed_hosts": ("*",)}, {"hosts-not-limited": True}),
        ({"address": None, "allowed_hosts": ()}, {"hosts-not-limited": True}),
        ({"address": "::", "allowed_hosts": ("localhost",)}, {"hosts-of-this-machine": False}),
        ({"address": "127.0.0.1"}, {}),
        ({"address": "127.0.0.1", "has_login": False}, {"no-login": False}),
        ({"xsrf_protection": False}, {"xsrf-protection-off": True}),
        ({"same_origin_only": False}, {"any-origin-allowed": True}),
        ({"error_details": "full"}, {"error-details-shown": True}),
        ({"error_details": "type"}, {"error-details-shown": True}),
        ({"has_login": False}, {"no-login": False}),
    ],
)
def test_each_unsafe_option_has_a_code(machine, changes, expected):
    assert codes(replace(OPEN, **changes), machine) == expected


@pytest.mark.parametrize("address", ["127.0.0.1", "127.3.2.1", "::1", "[::1]", "localhost",
                                     "unix:///run/flows.sock"])  # fmt: skip
def test_loopback_and_sockets_are_of_this_machine(address):
    assert not replace(SAFE, address=address).open_to_others


@pytest.mark.parametrize("address", [None, "", "0.0.0.0", "::", "10.1.2.3", "flows.example.org"])
def test_everything_else_is_open_to_others(address):
    assert replace(SAFE, address=address).open_to_others


def test_the_folder_of_runs_is_there_and_private(machine, tmp_path):
    assert codes(SAFE, replace(machine, home="")) == {"home-missing": True}
    assert codes(SAFE, replace(machine, home="beside")) == {"home-missing": True}
    assert codes(SAFE, replace(machine, home=str(tmp_path / "none"))) == {"home-missing": True}
    Path(machine.home).chmod(0o750)
    assert codes(SAFE, machine) == {"home-open": True}


def test_a_folder_that_cannot_be_written_is_refused(machine, monkeypatch):
    monkeypatch.setattr(serving.os, "access", lambda path, how: False)
    assert codes(SAFE, machine) == {"home-not-writable": True}


def test_uploads_fit_into_memory_and_disk(machine, monkeypatch):
    large = replace(SAFE, max_upload_mb=400)
    assert codes(large, replace(machine, free_memory=399 * 2**20)) == {"upload-beyond-memory": True}
    assert "upload-beyond-memory" not in codes(large, replace(machine, free_memory=400 * 2**20))
    assert codes(replace(SAFE, max_upload_mb=1e12), replace(machine, free_memory=None)) == {
        "upload-beyond-disk": True
    }


def test_root_is_refused_and_refusals_come_first(machine):
    found = codes(replace(OPEN, has_login=False), replace(machine, is_root=True))
    assert list(found.items()) == [("root-user", True), ("no-login", False)]


@pytest.mark.parametrize("text", ["abc", "-1", "0", "nan", "inf", "1e99", "1 h", "<b>"])
def test_a_time_for_work_that_is_none_is_refused(machine, text):
    assert codes(SAFE, replace(machine, job_hours=text)) == {"wrong-job-hours": True}
    with refused("wrong-job-hours"):
        longest_job_s({JOB_HOURS: text})


def test_work_without_a_longest_time_is_told_where_others_wait(machine):
    assert codes(OPEN, replace(machine, job_hours="")) == {"job-time-not-limited": False}
    assert codes(SAFE, replace(machine, job_hours=" ")) == {}
    assert longest_job_s({}) is None
    assert longest_job_s({JOB_HOURS: "1.5"}) == 5400


@pytest.mark.parametrize("home", ["~nobody-is-called-so/x", "x" * 5000])
def test_a_folder_that_cannot_be_is_missing(machine, home):
    assert codes(SAFE, replace(machine, home=home)) == {"home-missing": True}


def test_words_come_before_the_environment_and_that_before_files(tmp_path):
    first, last = tmp_path / "a", tmp_path / "b"
    for folder, text in ((first, '"10.0.0.1"\nmaxUploadSize = 7'), (last, '"10.0.0.2"')):
        folder.mkdir()
        (folder / "config.toml").write_text(f"[server]\naddress = {text}\n")
    (first / "secrets.toml").write_text('[auth]\nclient_id = "x"\n')
    folders = (first, last, tmp_path / "none")
    assert ServerOptions.found([], {}, folders) == ServerOptions(
        "10.0.0.2", (), True, True, 7.0, "full", has_login=True
    )
    told = {"STREAMLIT_SERVER_ADDRESS": "10.0.0.3", "STREAMLIT_SERVER_ENABLE_CORS": "false",
            "STREAMLIT_SERVER_ALLOWED_HOSTS": "a.example b.example"}  # fmt: skip
    found = ServerOptions.found([], told, folders)
    assert (found.address, found.same_origin_only) == ("10.0.0.3", False)
    assert found.allowed_hosts == ("a.example", "b.example")
    words = ["--server.address=10.0.0.4", "--server.allowedHosts", "c.example",
             "--server.allowedHosts", "d.example", "--server.enableXsrfProtection", "false",
             "--", "--server.address=10.0.0.5"]  # fmt: skip
    found = ServerOptions.found(words, told, folders)
    assert (found.address, found.xsrf_protection) == ("10.0.0.4", False)
    assert found.allowed_hosts == ("c.example", "d.example")


def test_options_that_cannot_be_read_are_told(tmp_path):
    (tmp_path / "config.toml").write_text("[server")
    with refused("options-unreadable", "config.toml"):
        ServerOptions.found([], {}, [tmp_path])
    with refused("upload-size-not-a-number"):
        ServerOptions.found(["--server.maxUploadSize", "much"], {}, [])


@pytest.mark.parametrize("key", DEFAULTS)
def test_options_are_those_of_streamlit(key):
    option = config._config_options_template[key]
    assert variable(key) == option.env_var
    default = DEFAULTS[key]
    assert option.default_val == (list(default) if isinstance(default, tuple) else default)


def test_as_it_comes_only_this_machine_is_served(machine):
    shipped = ServerOptions.found([], {}, [app_folder() / ".streamlit"])
    assert not shipped.open_to_others
    assert codes(replace(shipped, max_upload_mb=1), machine) == {}


def test_a_machine_tells_of_itself():
    here = Machine.here({"FLOWS_HOME": "/srv/flows"})
    assert here.home == "/srv/flows"
    assert here.free_memory is None or here.free_memory > 0


def test_a_container_has_no_more_memory_free_than_it_may_take(monkeypatch):
    if Machine.here({}).free_memory is None:
        pytest.skip("the system does not tell what is free")
    monkeypatch.setattr(serving, "machine_bytes", lambda: 4096)
    assert Machine.here({}).free_memory == 4096
