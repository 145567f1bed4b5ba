"""Plans that were made before: a folder of bundles, by all that a plan depends on.

An entry is a bundle as `save` writes it, and a seal over its manifest under a key that only this
cache has. So nothing is believed that this cache did not write itself, and what the seal holds for
need not be checked again. Entries that were not used for longest go first where the cache is full.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from nacre.base.diagnostics import InputError
from nacre.base.files import write_whole
from nacre.base.locks import lock_folder
from nacre.base.stages import stage
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.options import Options
from nacre.compile.pipeline import compile_module
from nacre.compile.plan_cache.key import plan_key
from nacre.compile.storage.folder import load_checked_before, save
from nacre.compile.storage.names import MANIFEST
from nacre.compile.storage.user_cache import SealedFolder, cache_folder, read_start
from nacre.compile.target import Target
from nacre.core.module import Module

MOST_BYTES = 2 << 30
_WORTH_KEEPING_SECONDS = 1.0  # what is faster made than that is made again
_SEAL = "seal"
_KEY = re.compile(r"[0-9a-f]{64}")


def compile_or_recall(
    module: Module, target: Target, options: Options, plans: PlanCache | None
) -> CompiledModel:
    """The same as `compile_module`, from plans that were made before where there is one."""
    if plans is None:
        return compile_module(module, target, options)
    with stage("looking for a plan made before"):
        key = plan_key(module, target, options)
        known = None if key is None else plans.load(key, module)
    if known is not None:
        return known
    begun = time.monotonic()
    made = compile_module(module, target, options)
    if key is not None and time.monotonic() - begun > _WORTH_KEEPING_SECONDS:
        with stage("keeping the plan"):
            plans.store(key, made)
    return made


def default_cache() -> PlanCache | None:
    """That of this user; None where none is wanted."""
    folder = cache_folder("plans")
    return None if folder is None else PlanCache(folder)


@dataclass(frozen=True)
class PlanCache:
    """Plans in a folder, found by a key."""

    folder: Path
    most_bytes: int = MOST_BYTES

    def load(self, key: str, module: Module) -> CompiledModel | None:
        """The plan of a key, for the module that it was made of; None where there is none.

        What is damaged, or was written by somebody else, counts as not there.
        """
        entry = self.folder / key
        try:
            if not hmac.compare_digest(read_start(entry / _SEAL), self._seal(key)):
                return None
            found = load_checked_before(entry)
            with contextlib.suppress(OSError):  # of others' plans, which are read all the same
                os.utime(entry)  # used just now
        except (OSError, InputError):
            return None
        return replace(found, source=module, has_reference=True)

    def store(self, key: str, model: CompiledModel) -> None:
        """Keep a plan that was checked; where that cannot be done it is not kept."""
        entry = self.folder / key
        with contextlib.suppress(OSError, InputError, MemoryError):
            SealedFolder(self.folder).prepare()
            save(model, entry, force=True, reference=False)
            write_whole(entry / _SEAL, [self._seal(key)])
            with lock_folder(self.folder):
                self._trim(key)

    def _seal(self, key: str) -> bytes:
        """What says that this cache wrote an entry as it is; the manifest has all other hashes."""
        manifest = hashlib.sha256((self.folder / key / MANIFEST).read_bytes()).digest()
        return SealedFolder(self.folder).seal(key.encode() + manifest)

    def _trim(self, newest: str) -> None:
        """Remove the entries that were not used for longest, until the others fit."""
        sizes = {entry: _size(entry) for entry in self._entries()}
        total = sum(sizes.values())
        for entry in sorted(sizes, key=lambda e: (e.name == newest, e.stat().st_mtime)):
            if total <= self.most_bytes:
                return
            # Without its seal an entry is none, however far removing it gets.
            (entry / _SEAL).unlink(missing_ok=True)
            shutil.rmtree(entry, ignore_errors=True)
            total -= sizes[entry]

    def _entries(self) -> Iterator[Path]:
        for entry in self.folder.iterdir():
            if _KEY.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink():
                yield entry


def _size(entry: Path) -> int:
    return sum(file.lstat().st_size for file in entry.iterdir())
