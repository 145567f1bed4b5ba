"""The noise that each tensor of a plan gets, adds and passes on.

The plan's module runs beside the same in f32. What a tensor adds by itself is seen where everything
that goes into it is exact but for its storage; what it passes on is seen in the run itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from math import inf

import numpy as np

from nacre.compile.accuracy.measures import SQNR_DB, measure_accuracy
from nacre.compile.blame.measures import (
    channel_factors,
    histogram_of,
    noise_ratio,
    saturated_share,
    weight_noise,
)
from nacre.compile.blame.result import Blame, TensorNoise
from nacre.compile.blame.tensors import (
    PairedTensor,
    Pairing,
    pair_tensors,
    plan_values,
    to_reals,
    to_storage,
    wanted_values,
)
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.bundle.not_finite import warn_of_lost_inputs
from nacre.compile.bundle.reference import Reference
from nacre.compile.quantise.following_function import function_after
from nacre.compile.quantise.roles import Graph
from nacre.core.constants import constant_array
from nacre.core.evaluation.evaluate import check_inputs, evaluate
from nacre.core.evaluation.plan import initial_values
from nacre.core.module import CoreOperation
from nacre.core.values import Array

_WITH_WEIGHTS = frozenset({"QConv", "QLinear"})
_PRODUCTS = frozenset({"Conv", "Linear", "MatMul"})
Judge = Callable[[Array], Array]


def find_blame(bundle: CompiledModel, inputs: Mapping[str, object]) -> Blame:
    """Every tensor of a plan that stands for one of its model, in a run on some inputs."""
    state = initial_values(bundle.source)
    arrays = {**state, **check_inputs(bundle.source, inputs, state)}
    for lost in warn_of_lost_inputs(bundle.manifest, arrays):
        warnings.warn(f"{lost.code}: {lost.message}", stacklevel=2)
    pairing = pair_tensors(bundle)
    run = _NoiseRun(bundle, pairing, arrays, wanted_values(pairing, arrays))
    tensors = tuple(run.measure())
    least = bundle.manifest.accuracy_db or SQNR_DB
    expected = evaluate(bundle.source, inputs)
    ports = bundle.manifest.outputs
    outputs = tuple(
        measure_accuracy(
            port.name, bundle.source, value, bundle.accuracy_precision, found, wanted,
            least_db=bundle.manifest.accuracy_db,
        )
        for port, value, found, wanted in zip(
            ports, bundle.source.outputs, bundle.compute(arrays, ordered=False), expected,
            strict=False,
        )
    )  # fmt: skip
    return Blame(
        bundle.manifest.device, bundle.precision_text, least, outputs, tensors,
        notes=bundle.manifest.notes,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _NoiseRun:
    bundle: CompiledModel
    pairing: Pairing
    arrays: Mapping[str, Array]
    wanted: Mapping[int, Array]

    def measure(self) -> Iterator[TensorNoise]:
        """A tensor after the other, in the order of the legal module."""
        exact = Reference(self.bundle, self.arrays, is_ordered=False)
        pairs = {pair.value: pair for pair in self.pairing.tensors}
        left: dict[int, float] = {}  # what is left of each value that was looked at
        for value, found in plan_values(self.bundle, self.arrays):
            op = self.bundle.legal.by_id[value]
            before = min((left.get(o, inf) for o in op.operands), default=inf)
            left[value] = before
            if value in pairs:
                noise = self._tensor(pairs[value], op, found, before, exact)
                left[value] = noise.after
                yield noise

    def _tensor(
        self, pair: PairedTensor, op: CoreOperation, found: Array, before: float, exact: Reference
    ) -> TensorNoise:
        wanted = self.wanted[pair.source]
        reals = to_reals(pair, found)
        factors = channel_factors(reals, wanted)
        scaled = wanted if factors is None else wanted * factors
        judge = self._judges.get(pair.wanted, np.asarray)
        stored = to_storage(pair, op, scaled)
        own = stored if op.opcode == "Input" else exact.expected(pair.value)
        exact.record(pair.value, stored)

        def ratio(array: Array) -> float:
            held = array if factors is None else array / factors
            return noise_ratio(judge(held), judge(wanted))

        return TensorNoise(
            self._layer_of.get(pair.value, ""),
            pair.node,
            op.opcode,
            op.type.dtype,
            op.type.shape,
            before,
            ratio(to_reals(pair, own)),
            ratio(to_reals(pair, stored)),
            self._weights(pair, op),
            ratio(reals),
            saturated_share(found, scaled, pair.affine),
            None if pair.affine is None else pair.affine.scale,
            None if pair.affine is None else pair.affine.zero,
            histogram_of(found, pair.affine),
            tuple(self._changes(pair, op, factors is not None)),
            pair.source,
        )

    # What is known of it

    @cached_property
    def _judges(self) -> Mapping[int, Judge]:
        """What is made of each element before anything else sees it, by the float value.

        A scale is chosen for that: of what a function makes 0 nothing is kept.
        """
        if self.bundle.manifest.precision != "i8":
            return {}
        graph = Graph(self.pairing.floats.module)
        found = {pair.wanted: function_after(graph, pair.wanted) for pair in self.pairing.tensors}
        return {value: function for value, function in found.items() if function is not None}

    @cached_property
    def _layer_of(self) -> Mapping[int, str]:
        layers = self.bundle.manifest.layers
        return {origin.legal: layer.name for layer in layers for origin in layer.operations}

    def _weights(self, pair: PairedTensor, op: CoreOperation) -> float | None:
        """Of the weights of a product on integers, beside those in f32."""
        if op.opcode not in _WITH_WEIGHTS:
            return None
        other = self.pairing.floats.module.by_id[pair.wanted]
        constant = constant_array(self.bundle.legal.by_id[op.operands[1]])
        if other.opcode not in _PRODUCTS or constant is None:
            return None
        wanted = constant_array(self.pairing.floats.module.by_id[other.operands[1]])
        if wanted is None or wanted.shape != constant.shape:
            return None
        shape = [1] * constant.ndim
        shape[0 if op.opcode == "QLinear" else -1] = -1
        scales = np.asarray(op.attributes["w_scales"], np.float32).reshape(shape)
        return weight_noise(constant.astype(np.float32) * scales, wanted)

    def _changes(self, pair: PairedTensor, op: CoreOperation, is_rescaled: bool) -> Iterator[str]:
        """What stages did to a tensor, as far as the bundle knows."""
        precision, node = self.bundle.manifest.precision, pair.node
        if is_rescaled:
            yield "smoothing, equalisation: channels divided by factors that weights behind have"
        asked = [kind for pattern, kind in self.bundle.manifest.precision_map.items()
                 if fnmatchcase(node, pattern) or pattern == f"%{pair.source}"]  # fmt: skip
        if asked:
            yield f"precision map: {asked[-1]} was asked for"
        elif precision == "i8" and op.type.element.kind == "float":
            is_product = op.opcode in _PRODUCTS
            yield (
                "islands: kept in floats for the outputs' accuracy"
                if is_product
                else ("islands: floats, where 256 steps or the device have no form")
            )
        if pair.wanted in self._judges and pair.affine is not None:
            yield "observer: the range is that which the function behind it needs"
