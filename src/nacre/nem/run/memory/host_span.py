"""Where a diagnostic stands that is about the caller, not about any text."""

from __future__ import annotations

from nacre.base.source import whole_file

HOST = whole_file("<host>")
