"""Bundles that this user's nacre has checked before, each by a mark of its manifest.

The manifest has the hashes of all other files, and a mark is a seal, so that a bundle with one is
as it was when it was checked. Another nacre checks anew: its rules may be others.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from nacre.base.locks import lock_folder
from nacre.compile.storage.user_cache import SealedFolder, cache_folder, code_digest

WORTH_A_MARK = 200_000  # characters of a program; what is shorter is checked at once
_MOST_MARKS = 1000
_MARK = re.compile(r"[0-9a-f]{64}")


def checked_bundles() -> CheckedBundles | None:
    """Those that are marked in this user's cache; None where none is wanted."""
    folder = cache_folder("checked")
    return None if folder is None else CheckedBundles(folder)


@dataclass(frozen=True)
class CheckedBundles:
    """Marks in a folder; one that cannot be read or written has none."""

    folder: Path

    def has(self, manifest: bytes) -> bool:
        """Whether a bundle with this manifest was checked."""
        try:
            mark = self._mark(manifest)
            found = mark.is_file()
        except OSError:
            return False
        if found:
            with contextlib.suppress(OSError):
                os.utime(mark)  # used just now
        return found

    def add(self, manifest: bytes) -> None:
        """Remember that a bundle was checked and has no errors."""
        with contextlib.suppress(OSError):
            SealedFolder(self.folder).prepare()
            self._mark(manifest).touch(mode=0o600)
            with lock_folder(self.folder):
                self._trim()

    def _mark(self, manifest: bytes) -> Path:
        content = code_digest() + hashlib.sha256(manifest).digest()
        return self.folder / SealedFolder(self.folder).seal(content).hex()

    def _trim(self) -> None:
        """Remove what was not used for longest."""
        marks = [path for path in self.folder.iterdir() if _MARK.fullmatch(path.name)]
        marks.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in marks[_MOST_MARKS:]:
            path.unlink(missing_ok=True)
