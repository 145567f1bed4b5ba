"""A file with its weights quantised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.source import whole_file
from nacre.base.suggest import did_you_mean
from nacre.nac.format.positions import BinarySource
from nacre.nac.format.values import Data, NacFile, Tensor
from nacre.nac.program.interface import program_interface
from nacre.nac.quantise.choice import OF_TABLE, Choice, reason_of_type, uses_of
from nacre.nac.quantise.halves import loaded_halves
from nacre.nac.quantise.recipes import RECIPES, TABLE_RECIPES
from nacre.nac.quantise.report import QuantisationReport, WeightError, weight_error
from nacre.nac.rules.building import NAC51, refusal
from nacre.nac.run.dequantisation import dequantize, stored_elements
from nacre.nac.run.model import NacModel, model_of
from nacre.nac.save import move_weights
from nacre.nac.spec.elements import FP16, QUANTIZATIONS

_MOST_SHOWN = 3
OPTIONS = tuple(layout.option for layout in QUANTIZATIONS.values())


def quantise(
    model: NacModel,
    quant: str,
    *,
    keep: Iterable[str] = (),
    keep_norms: bool = True,
    least_rank: int = 1,
) -> tuple[NacModel, QuantisationReport]:
    """The same model with its weights quantised, and what that does to each of them.

    - `keep`: patterns of names of weights that stay as they are, such as `*.bias`
    - `keep_norms`: whether the weights and statistics of norms stay
    - `least_rank`: weights with fewer axes stay

    What has no place in the quantisation stays too: other types than f32, scalars, infinities, and
    what states start as.
    """
    code = quantisation_code(quant)
    if model.file.header.quant:
        present = QUANTIZATIONS[model.file.header.quant].name
        raise refusal(
            f"the weights are {present} already", "quantise the model that they came from"
        )
    file = model.file if model.file.header.is_internal else move_weights(model, True)
    quantised, report = quantise_file(file, code, Choice(tuple(keep), keep_norms, least_rank))
    return model_of(quantised, model.source), report


def quantisation_code(quant: str) -> int:
    """The code of a quantisation by its name, in any case; InputError where there is none."""
    for layout in QUANTIZATIONS.values():
        if layout.option == str(quant).lower():
            return layout.code
    expected = f"expected one of {', '.join(OPTIONS)}"
    raise refusal(f"no quantisation `{quant}`, {expected}", did_you_mean(str(quant), OPTIONS))


def quantise_file(file: NacFile, quant: int, choice: Choice) -> tuple[NacFile, QuantisationReport]:
    """The file with internal weights of f32 quantised, and the report."""
    names = {named.id: named.text for named in file.data.parameters}
    all_names = program_interface(file, BinarySource("<nac>", 0))[0].parameters
    choice.require_known(list(all_names.ids))
    uses = uses_of(file)
    tensors: list[Tensor] = []
    rows: list[WeightError] = []
    for tensor in file.data.tensors:
        given = all_names.by_id[tensor.id]
        stored, row = _quantise_tensor(tensor, given, quant, choice, uses.get(tensor.id))
        tensors.append(stored)
        rows.append(row)
    report = QuantisationReport(QUANTIZATIONS[quant].name, tuple(rows))
    if quant == FP16 and any(row.stored != "kept" for row in rows):
        _require_no_halves(file, names)
    data = Data(file.data.parameters, file.data.inputs, tuple(tensors))
    header = replace(file.header, quant=_header_code(file, quant))
    return NacFile(header, {**file.sections, "DATA": data}, file.gaps), report


def _quantise_tensor(
    tensor: Tensor, names: Sequence[str], quant: int, choice: Choice, use: str | None
) -> tuple[Tensor, WeightError]:
    before, name = stored_elements(tensor), names[0]
    reason = reason_of_type(tensor.dtype) if quant else "no quantisation"
    if reason is None:
        reason = choice.reason(names, before, quant, use)
    if reason is not None:
        size = len(tensor.data)
        return tensor, WeightError(name, before.shape, "kept", reason, size, size)
    recipes = TABLE_RECIPES if use == OF_TABLE else RECIPES
    quantised = recipes[quant](tensor.id, np.ascontiguousarray(before))
    after = dequantize(quantised)
    code = quantised.quant or quant
    return quantised, weight_error(
        name, code, before, after, len(quantised.data) + len(quantised.scales)
    )


def _header_code(file: NacFile, quant: int) -> int:
    """FP16 is not said where nothing but halves of the model's own would be widened by it."""
    return 0 if quant == FP16 and loaded_halves(file) else quant


def _require_no_halves(file: NacFile, names: Mapping[int, str]) -> None:
    found = loaded_halves(file)
    if found:
        shown = ", ".join(backquote(names[tensor.id]) for tensor in found[:_MOST_SHOWN])
        more = f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
        message = f"beside weights of f32 the program has {shown}{more} of f16"
        help_ = "build from the model with `fp16`, which casts them, or use `int8_channel`"
        raise InputError([NAC51.at(whole_file("<nac>"), message, help=help_)])
