"""What an importer, an exporter or a runtime cannot do with something that is right in itself."""

from __future__ import annotations


class Unsupported(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A node, a call or an operation that has no form where it is to go: why, and what helps."""

    def __init__(self, reason: str, help: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.help = help
