"""The layers of a bundle in the debugger: by their own names, and by those of the model's nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import click

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import quoted, safe
from nacre.base.suggest import did_you_mean
from nacre.cli.debug.arguments import some
from nacre.nem.run.memory.host import host_error
from nacre.nem.run.sessions.tables import align_table

if TYPE_CHECKING:
    from nacre.cli.debug.debugger import Debugger
    from nacre.compile.bundle.manifest import LayerEntry, Manifest
    from nacre.nem.run.sessions.session import Session

_NOT_BEGUN = "-"
_MOST_NAMED = 3  # nodes of a layer, in a row of the table


@dataclass(frozen=True, eq=False)
class BundleNames:
    """What a manifest calls things, for commands that take names."""

    manifest: Manifest

    @cached_property
    def owners(self) -> dict[str, LayerEntry]:
        """The layer of every task, by the task's token."""
        layers = self.manifest.layers
        return {token: layer for layer in layers for token in (*layer.tasks, *layer.loads)}

    @cached_property
    def by_name(self) -> dict[str, list[LayerEntry]]:
        """Layers by their names, those of layers that run in them, and of the model's nodes."""
        found: dict[str, list[LayerEntry]] = defaultdict(list)
        for layer in self.manifest.layers:
            for name in dict.fromkeys((layer.name, *layer.members, *layer.nodes)):
                found[name].append(layer)
        return dict(found)

    def layers(self, name: str) -> list[LayerEntry]:
        """The layers that a name stands for: one, or all that do the work of a node."""
        if name not in self.by_name:
            hint = did_you_mean(name, self.by_name) or "`layers` lists them"
            raise host_error(f"no layer and no node {quoted(name)}", hint)
        own = [layer for layer in self.by_name[name] if layer.name == name]
        return own or self.by_name[name]

    def layer_of(self, step: str | None) -> LayerEntry | None:
        """The layer of a step, such as tC[3]."""
        return None if step is None else self.owners.get(step.partition("[")[0])


def no_bundle() -> InputError:
    """What is wrong with asking a program for layers."""
    message = "this is no bundle: a program has no layers and no model"
    return host_error(message, "debug the folder that `nacre compile` wrote")


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
        taken = session.taken_steps
        if self._first is None or self._first >= len(taken) or not self._is_own(session):
            own = {s.position for t in self.tokens for s in session.steps.by_name.get(t, ())}
            position = session.steps.position
            places = (at for at, step in enumerate(taken) if int(position[step]) in own)
            self._first = next(places, None)
        return self._first is not None

    def _is_own(self, session: Session) -> bool:
        """Whether what was found is still there: a session may have gone back and on elsewhere."""
        assert self._first is not None
        return _token(session.steps.name(session.taken_steps[self._first])) in self.tokens


def _token(step: str) -> str:
    return step.partition("[")[0]


def layer_break(names: BundleNames, name: str) -> tuple[LayerStart, str]:
    """The condition of a breakpoint on a layer or node, and what it is called."""
    layers = names.layers(name)
    tokens = frozenset(token for layer in layers for token in layer.tasks)
    called = " and ".join(dict.fromkeys(layer.name for layer in layers[:_MOST_NAMED]))
    more = len(layers) - _MOST_NAMED
    called += f" and {more} more" if more > 0 else ""
    what = f"layer {name}" if called == name else f"{name}, in layer {called}"
    return LayerStart(tokens), what


# What is shown


def describe_layer(layer: LayerEntry) -> str:
    """A layer, and the nodes that it comes from."""
    nodes = f", node {_nodes(layer)}" if layer.nodes else ""
    return f"layer {safe(layer.name)}{nodes}"


def _nodes(layer: LayerEntry) -> str:
    named = [safe(node) for node in layer.nodes[:_MOST_NAMED]]
    more = len(layer.nodes) - _MOST_NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def show_layers(debugger: Debugger, argument: str) -> None:
    """List the layers and how far each has come, or show one with all that belongs to it."""
    names = require_bundle(debugger)
    session = debugger.session
    done = _done(session)
    if argument:
        for layer in names.layers(argument):
            _show_layer(debugger, layer, done)
        return
    total = Counter({t: _count(session, t) for t in names.owners})
    rows = [
        (
            safe(layer.name), *_progress(layer.tasks, done, total), _operations(layer),
            f"{layer.macs:,}" if layer.macs else "-", _nodes(layer) or "-",
        )
        for layer in names.manifest.layers
    ]  # fmt: skip
    click.echo(align_table(("Layer", "State", "Tasks", "Operations", "MACs", "Node"), rows))


def _operations(layer: LayerEntry) -> str:
    """What a layer does, each kind once."""
    return " + ".join(dict.fromkeys(origin.opcode for origin in layer.operations))


def _done(session: Session) -> Counter[str]:
    """How often each token has been satisfied."""
    position = session.steps.position
    counts = Counter(int(position[step]) for step in session.taken_steps)
    named = session.steps.by_name.items()
    return Counter({name: sum(counts[s.position] for s in found) for name, found in named})


def _count(session: Session, token: str) -> int:
    numbers = session.steps.numbers
    return sum(numbers[s.position].size for s in session.steps.by_name.get(token, ()))


def _progress(tokens: Iterable[str], done: Counter[str], total: Counter[str]) -> tuple[str, str]:
    """In a word how far tasks have come, and in numbers."""
    taken, whole = (sum(counts[token] for token in tokens) for counts in (done, total))
    state = "done" if taken == whole else "running" if taken else _NOT_BEGUN
    return state, f"{taken} of {whole}"


def _show_layer(debugger: Debugger, layer: LayerEntry, done: Counter[str]) -> None:
    session = debugger.session
    total = Counter({t: _count(session, t) for t in (*layer.tasks, *layer.loads)})
    state, numbers = _progress(layer.tasks, done, total)
    state = "not begun" if state == _NOT_BEGUN else state
    click.echo(f"{describe_layer(layer)}: {state}, {numbers} tasks, {layer.macs:,} MACs")
    for origin in layer.operations:
        also = f" and {some([safe(name) for name in origin.also])}" if origin.also else ""
        of = f" of {safe(origin.node)}" if origin.node else ""
        click.echo(f"  {origin.opcode} %{origin.legal}{of}{also}")
    if layer.members:
        click.echo(f"  depth first: {some([safe(name) for name in layer.members])}")
    for result in layer.results:
        shape = "x".join(map(str, result.shape))
        click.echo(f"  makes %{result.value}: {result.elem} {shape} in {safe(result.buffer)}")
    click.echo(f"  tasks: {some(list(layer.tasks))}")
    if layer.loads:
        click.echo(f"  loads: {some(list(layer.loads))}")
