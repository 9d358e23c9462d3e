"""What may lie where a file is looked for, and is none."""

import os
from pathlib import Path

__all__ = ["put_in_place_of"]


def put_in_place_of(path: Path, what: str, aside: Path) -> None:
    """Move a file aside, and put a pipe, a folder, a device, a link or a huge file in its place."""
    path.rename(aside)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "huge":
        path.touch()
        os.truncate(path, 1 << 42)
    else:
        path.symlink_to("/dev/zero" if what == "device" else aside)
