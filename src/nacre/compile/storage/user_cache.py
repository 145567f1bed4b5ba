"""The folder in which nacre keeps what it can make again, and seals over what it wrote there.

A seal is under a secret that is made with a folder and never leaves it, so that nothing is believed
that came from elsewhere.
"""

from __future__ import annotations

import hmac
import os
import secrets
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from nacre import _version
from nacre.base.files import temporary_name
from nacre.base.locks import lock_folder

VARIABLE = "NACRE_CACHE"  # a folder; empty: nothing is kept
MOST_SEAL_BYTES = 1 << 12
_SECRET = "secret"
_SECRET_BYTES = 32
_SUFFIXES = frozenset({".py", ".nem", ".yaml", ".npz", ".json"})  # files that plans follow from


def cache_folder(name: str) -> Path | None:
    """A folder beside those of other programs of this user; None where none is wanted."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) / name if named.strip() else None
    home = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    try:
        base = Path(home) if home else Path.home() / ".cache"
    except RuntimeError:  # nobody's home is known
        return None
    return base / "nacre" / name


@cache
def code_digest() -> bytes:
    """The files of this nacre, by their names, sizes and times, and what computes for it."""
    root = Path(_version.__file__).parent
    files = sorted(path for path in root.rglob("*") if path.suffix in _SUFFIXES)
    marks = [(str(path.relative_to(root)), *_mark(path)) for path in files]
    return repr((_version.__version__, np.__version__, marks)).encode()


def _mark(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@dataclass(frozen=True)
class SealedFolder:
    """A folder with a secret."""

    path: Path

    def seal(self, content: bytes) -> bytes:
        """What only who knows the secret can write; OSError where there is none."""
        secret = read_start(self.path / _SECRET)
        if len(secret) != _SECRET_BYTES:
            raise OSError("the cache has no secret")
        return hmac.digest(secret, content, "sha256")

    def prepare(self) -> None:
        """Make the folder and its secret. Of two programs that make one, the first one's is kept.

        A part of one, as a full disk leaves it, would keep this folder from ever having a seal.
        """
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.path / _SECRET
        with lock_folder(self.path):
            if path.is_file() and path.stat().st_size == _SECRET_BYTES:
                return
            made = temporary_name(self.path)
            try:
                handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "wb") as stream:
                    stream.write(secrets.token_bytes(_SECRET_BYTES))
                os.replace(made, path)
            finally:
                made.unlink(missing_ok=True)


def read_start(path: Path) -> bytes:
    """What a file that is small begins with."""
    with path.open("rb") as file:
        return file.read(MOST_SEAL_BYTES)
