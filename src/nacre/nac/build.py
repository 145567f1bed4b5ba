"""`nacre.nac.build`: a model of any kind as a program with its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nacre.base.diagnostics import Warn
from nacre.base.stages import stage
from nacre.core.constants import constant_array
from nacre.core.models import Progress, Shapes
from nacre.core.module import Module
from nacre.nac.format.values import NacFile, Plan, Resource
from nacre.nac.mep.plan_sources import PlanSource, plan_of
from nacre.nac.program.canonical import canonical
from nacre.nac.program.interface import OWN_RESOURCES
from nacre.nac.program.lower import lower
from nacre.nac.quantise.apply import quantisation_code, quantise_file
from nacre.nac.quantise.choice import Choice
from nacre.nac.quantise.halves import loaded_halves, widen_halves
from nacre.nac.quantise.report import QuantisationReport
from nacre.nac.rules.building import refusal
from nacre.nac.run.model import NacModel, model_of
from nacre.nac.run.opaque import unknown_findings
from nacre.nac.sources import is_nac, load_source, module_of
from nacre.nac.spec.elements import DTYPE_CODES, FP16, QUANTIZATIONS

# What configurations call the width of a model, the first that is there counts.
_WIDTHS = ("hidden_size", "d_model", "n_embd", "hidden_dim")
_MOST_WIDTH = 0xFFFF
OnReport = Callable[[QuantisationReport], None]


def build(
    source: object,
    quant: str = "none",
    example_args: tuple[Any, ...] | None = None,
    shapes: Shapes | None = None,
    *,
    keep: Iterable[str] = (),
    keep_norms: bool = True,
    least_rank: int = 1,
    d_model: int | None = None,
    resources: Mapping[str, bytes] | None = None,
    manifest: bytes = b"",
    plan: PlanSource | None = None,
    on_report: OnReport | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
) -> NacModel:
    """Make a program of a model; the same model gives the same bytes each time.

    - `source`: a path (`.onnx`, `.pt2`, `.core`, `.nac`), a module of Core IR, a `NacModel` or a
      module of PyTorch, which needs `example_args` as it is called; what a file of NAC carries goes
      along, unless something else is given
    - `quant`: `none`, `fp16`, `int8_tensor`, `int8_channel` or `block_fp8`
    - `shapes`: sizes of inputs that leave them open
    - `keep`, `keep_norms`, `least_rank`: weights that are not quantised, see `nac.quantise`
    - `d_model`: the width that the header says; without it the model's own
    - `resources`, `manifest`, `plan`: files, tokenizer and execution plan to go into the file; the
      plan as its bytes (`nacre.nac.mep.assemble(text)`), the path of a `.mep` text, or the name of
      one that comes along (`nacre.nac.mep.plan_names()`)
    - `on_report`: is shown what quantisation does to each weight
    - `progress`: is told how many nodes of how many are imported
    - `warn`: is told what is odd about a model but does not stand in the way, such as operations
      that nothing knows: they stay in the file by their names

    InputError lists what stands in the way.
    """
    code = quantisation_code(quant)
    if is_nac(source):
        source = load_source(source)
        _require_unquantised(source, code)
    module = canonical(module_of(source, shapes, example_args, progress, warn))
    width = _configured_width(source) or _last_width(module) if d_model is None else d_model
    more = {**_resources_of(source), **(resources or {})}
    given: dict[str, Any] = {
        "d_model": width,
        "resources": [Resource(name, more[name]) for name in sorted(more)],
        "manifest": manifest or _manifest(source),
        "plan": _plan(source) if plan is None else plan_of(plan),
    }
    with stage("writing instructions"):
        file = lower(module, **given)
    if code == FP16 and _is_mixed(file):
        module = widen_halves(module)
        file = lower(module, **given)
    if code:
        with stage("quantising"):
            file, report = quantise_file(file, code, Choice(tuple(keep), keep_norms, least_rank))
        if on_report is not None:
            on_report(report)
    return _warned(model_of(file), warn)


def _warned(model: NacModel, warn: Warn | None) -> NacModel:
    """A model, when somebody was told of the operations in it that nothing knows."""
    if warn is not None:
        for odd in unknown_findings(model):
            warn(odd)
    return model


def _require_unquantised(model: NacModel, code: int) -> None:
    """Refuse to quantise what was quantised before."""
    if code and model.file.header.quant:
        found = QUANTIZATIONS[model.file.header.quant].name
        raise refusal(f"the weights are {found} already", "quantise the model that they came from")


def _resources_of(source: object) -> dict[str, bytes]:
    """The files inside a file of NAC."""
    if not isinstance(source, NacModel):
        return {}
    return {r.name: bytes(r.data) for r in source.file.resources if r.name not in OWN_RESOURCES}


def _manifest(source: object) -> bytes:
    return bytes(source.file.sections.get("PROC", b"")) if isinstance(source, NacModel) else b""


def _plan(source: object) -> Plan | None:
    return source.file.plan if isinstance(source, NacModel) else None


def _is_mixed(file: NacFile) -> bool:
    """Whether weights of f16 stand beside such as become f16."""
    is_wide = any(tensor.dtype == DTYPE_CODES["f32"] for tensor in file.data.tensors)
    return is_wide and bool(loaded_halves(file))


def _configured_width(source: object) -> int:
    """The width that a model's configuration says."""
    if isinstance(source, NacModel):
        return source.file.header.d_model
    config = getattr(source, "config", None)
    for name in _WIDTHS:
        width = getattr(config, name, None)
        if type(width) is int and 0 < width <= _MOST_WIDTH:
            return width
    return 0


def _last_width(module: Module) -> int:
    """What the last layer of weights takes; 0 where there is none."""
    for op in reversed(module.operations):
        if op.opcode in ("Linear", "MatMul"):
            weight = module.by_id[op.operands[1]]
            if constant_array(weight) is not None and weight.type.rank == 2:
                width = weight.type.shape[1 if op.opcode == "Linear" else 0]
                return width if width <= _MOST_WIDTH else 0
    return 0
