"""What a bundle calls its layers, and the nodes of the model that they come from."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote, safe
from nacre.base.suggest import did_you_mean
from nacre.nem.run.memory.host import host_error

if TYPE_CHECKING:
    from nacre.compile.bundle.manifest import LayerEntry, Manifest

MOST_NAMED = 3  # nodes of a layer, in a row of the table


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
        layers: dict[str, list[LayerEntry]] = defaultdict(list)
        for layer in self.manifest.layers:
            for name in dict.fromkeys((layer.name, *layer.members, *layer.nodes)):
                layers[name].append(layer)
        return dict(layers)

    def layers(self, name: str) -> list[LayerEntry]:
        """The layers that a name stands for: one, or all that do the work of a node."""
        if name not in self.by_name:
            hint = did_you_mean(name, self.by_name) or "`layers` lists them"
            raise host_error(f"no layer and no node {backquote(name)}", hint)
        named = [layer for layer in self.by_name[name] if layer.name == name]
        return named or self.by_name[name]

    def layer_of(self, step: str | None) -> LayerEntry | None:
        """The layer of a step, such as tC[3]."""
        return None if step is None else self.owners.get(step.partition("[")[0])


def no_bundle() -> InputError:
    """What is wrong with asking a program for layers."""
    message = "this is no bundle: a program has no layers and no model"
    return host_error(message, "debug the folder that `nacre compile` wrote")


def describe_layer(layer: LayerEntry) -> str:
    """A layer, and the nodes that it comes from."""
    nodes = f", node {nodes_text(layer)}" if layer.nodes else ""
    return f"layer {safe(layer.name)}{nodes}"


def nodes_text(layer: LayerEntry) -> str:
    """The nodes that a layer comes from, the first few by name."""
    named = [safe(node) for node in layer.nodes[:MOST_NAMED]]
    more = len(layer.nodes) - MOST_NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")
