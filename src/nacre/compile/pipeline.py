"""The stages in their order, from a module to a bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.compile.bundle import Bundle
from nacre.compile.emit import emit, statements_text
from nacre.compile.layout import layout
from nacre.compile.legalise import Legal, legalise
from nacre.compile.manifest import manifest
from nacre.compile.options import FEATURES, Options
from nacre.compile.partition import Partition, partition
from nacre.compile.place import Placement, place
from nacre.compile.program import Program
from nacre.compile.quantise.own_scales import Plain, unquantised
from nacre.compile.quantise.quantiser import Quantised, quantise
from nacre.compile.rules import CMP06
from nacre.compile.schedule import schedule
from nacre.compile.support import require_types
from nacre.compile.target import Target
from nacre.compile.tile import Tilings, tile
from nacre.core.module import Module

_ALL = frozenset(FEATURES)
OnStage = Callable[[str, object], None]  # a stage's name, and what came out of it


@dataclass(frozen=True, eq=False)
class Compiled:
    """What every stage made."""

    named: Module  # whose operations those of the legal module come from
    legal: Legal
    quantised: Quantised | None
    partition: Partition
    tilings: Tilings
    placement: Placement
    program: Program
    text: str


def run_stages(
    module: Module, target: Target, options: Options, on_stage: OnStage | None = None
) -> Compiled:
    """Every stage on the result of the one before; `on_stage` is shown each result."""

    def shown(stage: str, result: object) -> None:
        if on_stage is not None:
            on_stage(stage, result)

    # Integers of 8 bits take their scales from what the floats are, or from the model itself.
    is_own = options.precision == "i8" and not _is_dynamic(module)
    plain = unquantised(module) if is_own else Plain(module)
    legal = legalise(plain.module, "f32" if options.precision == "i8" else options.precision)
    shown("legalise", legal)
    legal = layout(legal)
    shown("layout", legal)
    quantised: Quantised | None = None
    if options.precision == "i8":
        quantised = quantise(
            legal,
            options.calibration,
            source=plain.module,
            given=plain.given or None,
            observer=options.observer,
            precision_map=options.precision_map,
        )
        legal = quantised.legal
        shown("quantise", quantised)
    layers = partition(legal, options)
    shown("partition", layers)
    require_types(layers, options)
    made = _planned(layers, target, options, shown)
    return Compiled(plain.module, legal, quantised, layers, *made)


def _planned(
    layers: Partition, target: Target, options: Options, shown: OnStage
) -> tuple[Tilings, Placement, Program, str]:
    """The stages behind the partition."""
    tilings = tile(layers, options)
    shown("tile", tilings.told(layers))
    placement = place(layers, tilings, options)
    shown("place", placement)
    program = schedule(layers, tilings, placement, options)
    shown("schedule", statements_text(program))
    text = emit(program, target)
    shown("emit", text)
    return tilings, placement, program, text


def compile_module(
    module: Module, target: Target, options: Options, on_stage: OnStage | None = None
) -> Bundle:
    """A module as a bundle for a device; InputError where the plan breaks a rule of NEM."""
    made = run_stages(module, target, options, on_stage)
    bundle = _bundle(module, made, options)
    # Everything that runs ahead takes tokens: with less of it, nearly every device has enough.
    for careful in (replace(options, caution=1), replace(options, caution=2, without=_ALL)):
        if not bundle.problems:
            break
        parts = _planned(made.partition, target, careful, on_stage or _unseen)
        made = replace(made, tilings=parts[0], placement=parts[1], program=parts[2], text=parts[3])
        bundle = _bundle(module, made, careful)
    if bundle.problems:
        first = bundle.problems[0]
        message = f"no plan for `{options.device.name}` is sound: {first.code}, {first.message}"
        raise InputError([CMP06.at(whole_file("<compile>"), message, help=first.help)])
    return bundle


def _bundle(module: Module, made: Compiled, options: Options) -> Bundle:
    described = manifest(
        module, made.partition, made.placement, made.program, options, made.named, made.quantised
    )
    return Bundle(module, made.text, made.placement.weights, described, made.legal.module)


def _is_dynamic(module: Module) -> bool:
    """Whether scales come out of the run: such parts are floats, and calibrated anew."""
    return any(op.opcode.startswith("DynamicQuantize") for op in module.operations)


def _unseen(stage: str, result: object) -> None:
    """What a stage made is shown to nobody."""
