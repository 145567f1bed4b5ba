"""`nacre nac` with all of its verbs: a file of this folder registers its own."""

from __future__ import annotations

from nacre.base.lazy import load_all
from nacre.cli.nac.files import nac

__all__ = ["nac"]

load_all("nacre.cli.nac")
