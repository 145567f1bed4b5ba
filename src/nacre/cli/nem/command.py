"""`nacre nem` with all of its verbs: a file of this folder registers its own."""

from __future__ import annotations

from nacre.base.lazy import load_all
from nacre.cli.nem.group import nem

__all__ = ["nem"]

load_all("nacre.cli.nem")
