"""Two plans of one model side by side: outputs, what is left of each tensor, cycles, bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from nacre.compile.accuracy.measures import Accuracy
from nacre.compile.blame.noise import find_blame
from nacre.compile.blame.result import Blame
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.estimate.from_bundle import bundle_bounds
from nacre.compile.estimate.layer_times import layer_times
from nacre.compile.target import request_error
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation
from nacre.nem.run.timing.profile import timing_profile


@dataclass(frozen=True)
class PlanFigures:
    """One of two plans as a whole."""

    device: str
    precision: str
    cycles: int
    weight_bytes: int
    outputs: tuple[Accuracy, ...]


@dataclass(frozen=True)
class NodePair:
    """A node of the model in both plans: what is left of it, and its layer's cycles."""

    node: str
    elems: tuple[str | None, str | None]
    ratios: tuple[float | None, float | None]  # dB
    layers: tuple[str | None, str | None]

    def as_json(self) -> dict[str, Any]:
        """Plain values; None for what is exact or not there."""
        finite = [None if r is None or abs(r) == inf else r for r in self.ratios]
        return {**asdict(self), "ratios": finite}


@dataclass(frozen=True)
class LayerPair:
    """Layers of both plans that do the same nodes, and the cycles of each."""

    nodes: tuple[str, ...]
    cycles: tuple[int, int]


@dataclass(frozen=True)
class PlanComparison:
    """Two plans of one model on the same inputs."""

    plans: tuple[PlanFigures, PlanFigures]
    nodes: tuple[NodePair, ...]
    layers: tuple[LayerPair, ...]

    @property
    def is_conclusive(self) -> bool:
        """Whether every output of the model says something about the plans."""
        return not any(output.problem for plan in self.plans for output in plan.outputs)

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "plans": [_plan_as_json(plan) for plan in self.plans],
            "nodes": [node.as_json() for node in self.nodes],
            "layers": [asdict(layer) for layer in self.layers],
        }


def _plan_as_json(plan: PlanFigures) -> dict[str, Any]:
    return {**asdict(plan), "outputs": [output.as_json() for output in plan.outputs]}


def compare_plans(
    first: CompiledModel, second: CompiledModel, inputs: Mapping[str, object]
) -> PlanComparison:
    """Both plans beside the model; InputError where they are of two models."""
    _require_one_model(first, second)
    blames = find_blame(first, inputs), find_blame(second, inputs)
    times = _cycles_by_layer(first), _cycles_by_layer(second)
    figures = tuple(
        PlanFigures(
            plan.manifest.device, plan.precision_text, sum(own.values()), len(plan.weights),
            blame.outputs,
        )
        for plan, blame, own in zip((first, second), blames, times, strict=True)
    )  # fmt: skip
    return PlanComparison(
        (figures[0], figures[1]), _node_pairs(*blames), _layer_pairs(first, second, times)
    )


def _require_one_model(first: CompiledModel, second: CompiledModel) -> None:
    if not (first.has_reference and second.has_reference):
        raise request_error(
            "a bundle was written without the model as it came, which plans are compared with",
            "compile it again, without `--no-reference`",
        )
    if first.source is not second.source and not _is_same(first, second):
        raise request_error(
            "the two bundles are plans of two models",
            "compile one model in two precisions, or for two devices",
        )


def _is_same(first: CompiledModel, second: CompiledModel) -> bool:
    ours, theirs = first.source, second.source
    return (
        ours.outputs == theirs.outputs
        and len(ours.operations) == len(theirs.operations)
        and all(map(_are_alike, ours.operations, theirs.operations))
    )


def _are_alike(one: CoreOperation, other: CoreOperation) -> bool:
    if (one.opcode, one.operands, one.type) != (other.opcode, other.operands, other.type):
        return False
    array, again = constant_array(one), constant_array(other)
    if array is None or again is None:
        return array is again and one.attributes == other.attributes
    return array.tobytes() == again.tobytes()


def _node_pairs(first: Blame, second: Blame) -> tuple[NodePair, ...]:
    """By the node, in the order of the first plan; the last tensor of a node has its result."""
    ours = {tensor.node: tensor for tensor in first.tensors}
    theirs = {tensor.node: tensor for tensor in second.tensors}
    pairs = []
    for node in dict.fromkeys((*ours, *theirs)):
        both = ours.get(node), theirs.get(node)
        elems, ratios, layers = (
            tuple(None if one is None else getattr(one, what) for one in both)
            for what in ("elem", "after", "layer")
        )
        pairs.append(NodePair(node, elems, ratios, layers))  # type: ignore[arg-type]
    return tuple(pairs)


def _cycles_by_layer(plan: CompiledModel) -> dict[str, int]:
    timed = plan.time()
    device = timed.timeline.device
    bounds = bundle_bounds(plan, device, timing_profile(device))
    return {
        layer.name: layer.cycles for layer in layer_times(timed.timeline, plan.manifest, bounds)
    }


def _layer_pairs(
    first: CompiledModel, second: CompiledModel, times: tuple[Mapping[str, int], Mapping[str, int]]
) -> tuple[LayerPair, ...]:
    """Layers joined where they share a node, until no node is in two of them."""
    groups = _Groups()
    owned: list[tuple[int, str, tuple[str, ...]]] = []
    for side, plan in enumerate((first, second)):
        for layer in plan.manifest.layers:
            nodes = layer.nodes or (layer.name,)
            groups.join(nodes)
            owned.append((side, layer.name, nodes))
    cycles: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    names: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for side, layer_name, nodes in owned:
        group = groups.of(nodes[0])
        cycles[group][side] += times[side].get(layer_name, 0)
        names[group].update(dict.fromkeys(nodes))
    return tuple(
        LayerPair(tuple(names[group]), (both[0], both[1])) for group, both in cycles.items()
    )


class _Groups:
    """Names that belong together."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The name that stands for all that are together with one."""
        at = name
        while self._parents.setdefault(at, at) != at:
            at = self._parents[at]
        self._parents[name] = at
        return at

    def join(self, names: tuple[str, ...]) -> None:
        """These are together from now on."""
        first = self.of(names[0])
        for name in names[1:]:
            self._parents[self.of(name)] = first
