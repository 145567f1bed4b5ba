"""What a run has to say: each kind of finding once for a block and operand, at its first place."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Rule
from nacre.base.source import Source, Span, whole_file
from nacre.tcb.machine.instances import Instances


class Findings:
    """Diagnostics of a run in the order in which they came up."""

    def __init__(self, instances: Instances) -> None:
        self._instances = instances
        self._seen: set[tuple[str, int, int]] = set()
        self.diagnostics: list[Diagnostic] = []

    def is_known(self, rule: Rule, block: int, part: int) -> bool:
        """Whether this has been reported of that part of a block."""
        return (rule.code, block, part) in self._seen

    def report(self, rule: Rule, instance: int, message: str, part: int = 0) -> None:
        """A finding about an instance; `message` goes on after its name."""
        block = int(self._instances.block[instance])
        if self.is_known(rule, block, part):
            return
        self._seen.add((rule.code, block, part))
        name = self._instances.name(instance)
        self.diagnostics.append(rule.at(place_of(self._instances, instance), f"`{name}` {message}"))


def place_of(instances: Instances, instance: int) -> Span:
    """The line of the program that an instance comes from; the whole of it where none is known."""
    image = instances.image
    name = image.source or image.entry
    origin = instances.origins.get(instances.block_of(instance).block.position)
    if origin is None or origin.line < 1:
        return whole_file(name)
    lines = Source(name, "\n" * (origin.line - 1), is_shown=False)  # all that is known of the text
    return lines.span(lines.size, lines.size)
