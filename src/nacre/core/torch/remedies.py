"""What helps, where several findings have the same remedy, and where the user's code is."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from nacre.base.excerpt import safe

UNUSED = "leave this output of the call unused"
NEWER = "export the model anew, with the PyTorch that is installed"
PARTS = "cut the model into parts, and bring them in one by one"

_FRAME = re.compile(r'File "([^"<]+)", line ([0-9]+)')
# Code that stands between the user's line and the call, here or where a file was written.
_PACKAGES = ("-packages/torch/", "-packages/nacre/")
_OURS = str(Path(__file__).parents[2]).replace("\\", "/")


def place_of(stack: str) -> str:
    """Where the user's code makes a call, by what PyTorch remembers; nothing where it does not."""
    return _place([(name, int(line)) for name, line in _FRAME.findall(stack)])


def place_of_error(error: BaseException) -> str:
    """Where the user's code raised an error, or made the call that did."""
    frames = traceback.extract_tb(error.__traceback__)
    return _place([(frame.filename, frame.lineno or 0) for frame in frames])


def _place(frames: list[tuple[str, int]]) -> str:
    own = [(name, line) for name, line in frames if _is_users(name.replace("\\", "/"))]
    return f" at {safe(Path(own[-1][0]).name)}:{own[-1][1]}" if own else ""


def _is_users(name: str) -> bool:
    return not (name.startswith(("<", _OURS)) or any(part in name for part in _PACKAGES))
