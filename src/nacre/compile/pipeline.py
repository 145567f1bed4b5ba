"""The stages in their order, from a module to a bundle."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import msgspec

from nacre.base.collection import no_collection
from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.stages import stage
from nacre.compile.accuracy.measures import rounds_to_integers
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.bundle.manifest import Manifest, manifest
from nacre.compile.emission.stage import emit, statements_text
from nacre.compile.legalise.batch_parts import split_batches
from nacre.compile.legalise.layout import layout
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.native_order import leave_transposes_to_host
from nacre.compile.legalise.origins import model_place, nodes_text, place_of
from nacre.compile.legalise.oversized import split_deep_ops
from nacre.compile.legalise.stage import legalise
from nacre.compile.options import FEATURES, WEIGHT_BITS, Options, uses_calibration
from nacre.compile.partition.stage import Partition, partition
from nacre.compile.partition.support import require_types
from nacre.compile.partition.variants import lacking, wide_products
from nacre.compile.placement.capacity import (
    require_decompression,
    require_l1,
    require_room,
    require_room_as_bytes,
    require_room_for_ports,
)
from nacre.compile.placement.stage import Placement, place
from nacre.compile.program import Program
from nacre.compile.quantise.clustering import cluster_weights
from nacre.compile.quantise.prequantised.scales import FloatModel, float_model
from nacre.compile.quantise.quantiser import Quantised, quantise
from nacre.compile.quantise.weight_only.stage import quantise_weights
from nacre.compile.rules import CMP06
from nacre.compile.schedule.stage import schedule
from nacre.compile.target import Target
from nacre.compile.tiling.depth_first import group_layers, layers_for_manifest
from nacre.compile.tiling.shared_weights import PARTS, keep_shared_weights
from nacre.compile.tiling.stage import Tilings, tile
from nacre.compile.tiling.strips import cut_to_fit
from nacre.core.module import Labels, Module

_ALL = frozenset(FEATURES)
_UNUSED = "calibration data is not used: it is for i8, and the precision is {}"
_CAME_QUANTISED = "the model came quantised: i8 takes its integers as they are, {} goes around them"
OnStage = Callable[[str, object], None]  # a stage's name, and what came out of it


@dataclass(frozen=True, eq=False)
class Compiled:
    """What every stage made."""

    legal: Legal
    quantised: Quantised | None
    partition: Partition
    cut: Partition  # the same, with layers that are too large in parts
    tilings: Tilings
    placement: Placement
    program: Program
    text: str


def run_stages(
    module: Module, target: Target, options: Options, on_stage: OnStage | None = None
) -> Compiled:
    """Every stage on the result of the one before; `on_stage` is shown each result."""

    def report_stage(name: str, result: object) -> None:
        if on_stage is not None:
            on_stage(name, result)

    require_l1(module, options)
    require_decompression(module, options)
    require_room_for_ports(module, options)
    plain = float_source(module, options.precision)
    with stage("fitting operations to the device"):
        legal = legalise(plain.module, "f32" if options.precision == "i8" else options.arithmetic)
    report_stage("legalise", legal)
    with stage("choosing layouts of tensors"):
        is_i8 = options.precision == "i8"
        legal = layout(legal, lacking(options.device, "f32"), has_islands=is_i8)
        legal = split_deep_ops(legal, options)
    report_stage("layout", legal)
    quantised: Quantised | None = None
    if options.precision == "i8":
        require_room_as_bytes(legal, options)
        with stage("quantising"):
            quantised = quantise(
                legal,
                options.calibration,
                source=legal.source or plain.module,
                imported=plain.imported or None,
                observer=options.observer,
                precision_map=options.precision_map,
                without=options.quantise_without,
                wide=wide_products(options.device),
                fallback=options.fallback,
                accuracy_db=options.accuracy_db,
            )
        legal = split_deep_ops(quantised.legal, options)
        quantised = replace(quantised, legal=legal)
        report_stage("quantise", quantised)
    else:
        legal = replace(legal, notes=(*legal.notes, *_float_notes(module, options)))
    if options.precision in WEIGHT_BITS:
        with stage("quantising weights"):
            legal = quantise_weights(legal, options)
        report_stage("quantise", legal)
    if options.compress == "cluster":
        legal, quantised = _cluster(legal, quantised, module, options)
    if options.io_layout == "native":
        legal = leave_transposes_to_host(legal)
        quantised = quantised and replace(quantised, legal=legal)
    legal = split_batches(legal, options.l2_bytes)
    quantised = quantised and replace(quantised, legal=legal)
    with stage("grouping operations into layers"):
        layers = partition(legal, options)
    require_room(layers, options)
    report_stage("partition", layers)
    require_types(layers, options)
    compiled = _plan(layers, target, options, report_stage)
    return Compiled(legal, quantised, layers, *compiled)


def float_source(module: Module, precision: str) -> FloatModel:
    """What is legalised: for i8 the floats behind a model that came quantised, and its scales."""
    # Integers of 8 bits take their scales from what the floats are, or from the model itself.
    is_own = precision == "i8" and not _is_dynamic(module)
    return _with_source_name(float_model(module), module) if is_own else FloatModel(module)


def _cluster(
    legal: Legal, quantised: Quantised | None, module: Module, options: Options
) -> tuple[Legal, Quantised | None]:
    """Weights of as few values as a table of the device holds."""
    with stage("clustering weights"):
        legal = cluster_weights(legal, module, options, quantised)
    return legal, quantised and replace(quantised, legal=legal)


def _float_notes(module: Module, options: Options) -> Iterator[str]:
    """What a plan in floats leaves unused of what was given."""
    if options.calibration is not None and not uses_calibration(
        options.precision, options.compress
    ):
        yield _UNUSED.format(options.precision)
    if rounds_to_integers(module):
        yield _CAME_QUANTISED.format(options.precision)


def _with_source_name(plain: FloatModel, module: Module) -> FloatModel:
    """What came quantised has other lines than its file: errors are those of the whole file."""
    if plain.module is module:
        return plain
    labels = plain.module.labels or Labels()
    file = labels.source or (module.source_spans.source.name if module.source_spans else "<module>")
    return replace(plain, module=replace(plain.module, labels=replace(labels, source=file)))


def _plan(
    layers: Partition, target: Target, options: Options, report_stage: OnStage
) -> tuple[Partition, Tilings, Placement, Program, str]:
    """The stages behind the partition, of which layers may be cut."""
    with stage("tiling and placing"):
        layers, tilings, placement = _best_tiles(layers, options)
    report_stage("tile", tilings.describe(layers))
    report_stage("place", placement)
    with stage("scheduling"), no_collection():
        program = schedule(layers, tilings, placement, options)
    report_stage("schedule", statements_text(program))
    with stage("writing the program"), no_collection():
        text = emit(program, target)
    report_stage("emit", text)
    return layers, tilings, placement, program, text


def _best_tiles(layers: Partition, options: Options) -> tuple[Partition, Tilings, Placement]:
    """The tiles that take fewest cycles: with weights that stay in L1 or not, in groups or not."""
    with stage(f"choosing tiles of {len(layers.layers)} layers"):
        cut = cut_to_fit(layers, options)
        best = _place_tiles(cut, options)
    with stage("trying weights that stay in L1"):
        for part in PARTS:
            kept = keep_shared_weights(cut, options, part)
            if kept is not cut:
                best = min(best, _place_tiles(kept, options), key=lambda found: found[1].cycles)
    # Groups of layers that are whole, and of those that were cut: what is in strips has no group.
    with stage("trying groups of layers"):
        for ungrouped in (layers, best[0]):
            groups = group_layers(ungrouped, options)
            if len(groups.layers) < len(ungrouped.layers):
                found = _place_tiles(cut_to_fit(groups, options), options)
                best = min(best, found, key=lambda found: found[1].cycles)
    return best


def _place_tiles(layers: Partition, options: Options) -> tuple[Partition, Tilings, Placement]:
    """Tiles, and where everything lies; tiles of what turns out to lie in DDR are better others."""
    layers = replace(layers, spilled=frozenset())
    tilings = tile(layers, options)
    placement = place(layers, tilings, options)
    if placement.spilled_tensors:
        layers = replace(layers, spilled=placement.spilled_tensors)
        tilings = tile(layers, options)
        placement = place(layers, tilings, options)
    return layers, tilings, placement


def compile_module(
    module: Module, target: Target, options: Options, on_stage: OnStage | None = None
) -> CompiledModel:
    """A module as a bundle for a device; InputError where the plan breaks a rule of NEM."""
    compiled = run_stages(module, target, options, on_stage)
    bundle = bundle_of(module, compiled, options)
    # Everything that runs ahead takes tokens: with less of it, nearly every device has enough.
    for careful in (
        replace(options, token_reserve=1),
        replace(options, token_reserve=2, disabled=_ALL),
    ):
        if not bundle.problems:
            break
        parts = _plan(compiled.partition, target, careful, on_stage or _ignore_stage)
        compiled = Compiled(compiled.legal, compiled.quantised, compiled.partition, *parts)
        bundle = bundle_of(module, compiled, careful)
    if bundle.problems:
        raise InputError([_unsound_plan_finding(compiled, bundle.problems[0], options)])
    return bundle


def _unsound_plan_finding(compiled: Compiled, first: Diagnostic, options: Options) -> Diagnostic:
    """What is wrong with a plan, and with which layer of it where the place says so."""
    message = f"no plan for `{options.device.name}` is sound: {first.code}, {first.message}"
    line = first.span.source.line_text(first.location.line)
    names = re.findall(r"@debug\((\w+)\)", line)
    # Parts of a layer that was cut have names of their own.
    layers = (*compiled.partition.layers, *compiled.cut.layers)
    layer = next((x for x in layers if x.name in names), None)
    if layer is None:
        return CMP06.at(model_place(compiled.legal), message, help=first.help)
    values = [op.value_id for op in layer.operations]
    message += f", in `{layer.name}`{nodes_text(compiled.legal, values)}"
    return CMP06.at(place_of(compiled.legal, values), message, help=first.help)


def bundle_of(module: Module, compiled: Compiled, options: Options) -> CompiledModel:
    """What the stages made of a module, with all that a host has to know."""
    described = manifest(
        module,
        layers_for_manifest(compiled.partition, compiled.cut),
        compiled.placement,
        compiled.program,
        options,
        compiled.quantised,
    )
    placed = compiled.placement
    described = msgspec.structs.replace(
        described, member_values=_member_values(compiled, described)
    )
    return CompiledModel(
        module, compiled.text, placed.weights, described, compiled.legal.module, placed.parts
    )


def _member_values(compiled: Compiled, described: Manifest) -> dict[str, tuple[int, ...]]:
    """The values of layers that run in others: bounds count each layer for itself."""
    inside = {name for entry in described.layers for name in entry.members}
    return {
        layer.name: tuple(op.value_id for op in layer.operations)
        for layer in compiled.partition.layers
        if layer.name in inside
    }


def brings_scales(module: Module) -> bool:
    """Whether a model came quantised, so that i8 needs no data."""
    return not _is_dynamic(module) and bool(float_model(module).imported)


def _is_dynamic(module: Module) -> bool:
    """Whether scales come out of the run: such parts are floats, and calibrated anew."""
    return any(op.opcode.startswith("DynamicQuantize") for op in module.operations)


def _ignore_stage(stage: str, result: object) -> None:
    """What a stage made is shown to nobody."""
