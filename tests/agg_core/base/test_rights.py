"""What a process gives up: it writes in its folder alone, reaches nobody, and gains no rights."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agg_core.base.shipped import import_root

TRIES = """
import ctypes, json, os, socket, sys
from pathlib import Path
from agg_core.base.rights import give_up_rights
folder, outside, port = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
knows = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1)) >= 1
give_up_rights(folder)
def may(act):
    try:
        act()
    except OSError:
        return False
    return True
(folder / "within").mkdir()
(folder / "a").write_text("a")
os.replace(folder / "a", folder / "within" / "b")
status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
print(json.dumps({
    "knows": knows,
    "reads": (outside / "there").read_text(),
    "within": (folder / "within" / "b").read_text(),
    "null": may(lambda: Path(os.devnull).write_text("x")),
    "writes": may(lambda: (outside / "new").write_text("x")),
    "alters": may(lambda: (outside / "there").write_text("x")),
    "removes": may((outside / "there").unlink),
    "connects": may(lambda: socket.create_connection(("127.0.0.1", port), timeout=5)),
    "no_new": status["NoNewPrivs"].strip(),
    "bound": int(status["CapBnd"], 16),
    "effective": int(status["CapEff"], 16),
}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other ways")
def test_a_process_that_gave_up_its_rights(tmp_path):
    import socket

    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "there").write_text("readable")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [sys.executable, "-c", TRIES, folder, outside, str(port)]
        done = subprocess.run(command, cwd=import_root(), check=True, capture_output=True)
    found = json.loads(done.stdout)
    assert (found["reads"], found["within"], found["null"]) == ("readable", "a", True)
    assert found["no_new"] == "1"
    assert found["effective"] in (0, 1 << 2), "root reads what belongs to others, no more"
    if not found["knows"]:
        pytest.skip("this kernel has no Landlock")
    assert not any(found[act] for act in ("writes", "alters", "removes", "connects"))
    assert [path.name for path in Path(outside).iterdir()] == ["there"]
