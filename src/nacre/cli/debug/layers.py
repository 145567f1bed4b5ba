"""The layers of a bundle in the debugger: by their own names, and by those of the model's nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from nacre.base.excerpt import safe
from nacre.cli.debug.arguments import list_some
from nacre.cli.debug.bundle_names import (
    MOST_NAMED,
    BundleNames,
    describe_layer,
    no_bundle,
    nodes_text,
)
from nacre.nem.run.sessions.tables import align_table

if TYPE_CHECKING:
    from nacre.cli.debug.debugger import Debugger
    from nacre.compile.bundle.manifest import LayerEntry
    from nacre.nem.run.sessions.session import Session

_NOT_BEGUN = "-"


def require_bundle(debugger: Debugger) -> BundleNames:
    """The names of the bundle; an error where a program alone is debugged."""
    if debugger.names is None:
        raise no_bundle()
    return debugger.names


@dataclass(eq=False)
class LayerStart:
    """Whether the next step is the first of some layers; loads of weights may come earlier."""

    tokens: frozenset[str]
    _first: int | None = field(default=None, init=False)  # of those taken, which was theirs

    def __call__(self, session: Session) -> bool:
        """As a condition of a breakpoint: before the next step."""
        step = session.next_step
        return step is not None and _token(step) in self.tokens and not self._has_begun(session)

    def _has_begun(self, session: Session) -> bool:
        taken = session.executed_steps
        if self._first is None or self._first >= len(taken) or not self._is_still_taken(session):
            positions = {s.position for t in self.tokens for s in session.steps.by_name.get(t, ())}
            position = session.steps.position
            taken_of_layer = (
                at for at, step in enumerate(taken) if int(position[step]) in positions
            )
            self._first = next(taken_of_layer, None)
        return self._first is not None

    def _is_still_taken(self, session: Session) -> bool:
        """Whether what was found is still there: a session may have gone back and on elsewhere."""
        assert self._first is not None
        return _token(session.steps.name(session.executed_steps[self._first])) in self.tokens


def _token(step: str) -> str:
    return step.partition("[")[0]


def layer_break(names: BundleNames, name: str) -> tuple[LayerStart, str]:
    """The condition of a breakpoint on a layer or node, and what it is called."""
    layers = names.layers(name)
    tokens = frozenset(token for layer in layers for token in layer.tasks)
    called = " and ".join(dict.fromkeys(layer.name for layer in layers[:MOST_NAMED]))
    more = len(layers) - MOST_NAMED
    called += f" and {more} more" if more > 0 else ""
    what = f"layer {name}" if called == name else f"{name}, in layer {called}"
    return LayerStart(tokens), what


# What is shown


def show_layers(debugger: Debugger, argument: str) -> None:
    """List the layers and how far each has come, or show one with all that belongs to it."""
    names = require_bundle(debugger)
    session = debugger.session
    done = _satisfied_counts(session)
    if argument:
        for layer in names.layers(argument):
            _show_layer(debugger, layer, done)
        return
    total = Counter({t: _instance_count(session, t) for t in names.owners})
    rows = [
        (
            safe(layer.name), *_progress(layer.tasks, done, total), _operations(layer),
            f"{layer.macs:,}" if layer.macs else "-", nodes_text(layer) or "-",
        )
        for layer in names.manifest.layers
    ]  # fmt: skip
    click.echo(align_table(("Layer", "State", "Tasks", "Operations", "MACs", "Node"), rows))


def _operations(layer: LayerEntry) -> str:
    """What a layer does, each kind once."""
    return " + ".join(dict.fromkeys(origin.opcode for origin in layer.operations))


def _satisfied_counts(session: Session) -> Counter[str]:
    """How often each token has been satisfied."""
    position = session.steps.position
    counts = Counter(int(position[step]) for step in session.executed_steps)
    named = session.steps.by_name.items()
    return Counter(
        {name: sum(counts[s.position] for s in statements) for name, statements in named}
    )


def _instance_count(session: Session, token: str) -> int:
    numbers = session.steps.numbers
    return sum(numbers[s.position].size for s in session.steps.by_name.get(token, ()))


def _progress(tokens: Iterable[str], done: Counter[str], total: Counter[str]) -> tuple[str, str]:
    """In a word how far tasks have come, and in numbers."""
    count, whole = (sum(counts[token] for token in tokens) for counts in (done, total))
    state = "done" if count == whole else "running" if count else _NOT_BEGUN
    return state, f"{count} of {whole}"


def _show_layer(debugger: Debugger, layer: LayerEntry, done: Counter[str]) -> None:
    session = debugger.session
    total = Counter({t: _instance_count(session, t) for t in (*layer.tasks, *layer.loads)})
    state, numbers = _progress(layer.tasks, done, total)
    state = "not begun" if state == _NOT_BEGUN else state
    click.echo(f"{describe_layer(layer)}: {state}, {numbers} tasks, {layer.macs:,} MACs")
    for origin in layer.operations:
        also = f" and {list_some([safe(name) for name in origin.also])}" if origin.also else ""
        of = f" of {safe(origin.node)}" if origin.node else ""
        click.echo(f"  {origin.opcode} %{origin.legal}{of}{also}")
    if layer.members:
        click.echo(f"  depth first: {list_some([safe(name) for name in layer.members])}")
    for result in layer.results:
        shape = "x".join(map(str, result.shape))
        click.echo(f"  makes %{result.value}: {result.elem} {shape} in {safe(result.buffer)}")
    click.echo(f"  tasks: {list_some(list(layer.tasks))}")
    if layer.loads:
        click.echo(f"  loads: {list_some(list(layer.loads))}")
