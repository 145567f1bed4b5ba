"""Models of every kind that nacre reads: those of Core IR, and files of NAC, which are lifted.

Files of other compilers do not say the types of their inputs. Whoever reads one gives the shapes;
the element type follows from use: what addresses rows of a table is i64, the rest is f32.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from nacre.base.diagnostics import Diagnostic, InputError, Warn
from nacre.base.excerpt import backquote
from nacre.base.hints import setting
from nacre.base.suggest import did_you_mean
from nacre.core.models import READERS as CORE_READERS
from nacre.core.models import ModelFile, Progress, Reader, Shapes
from nacre.core.models import read_model as read_known
from nacre.core.module import Module, TensorType
from nacre.core.rewrite.inexact.fold_floats import fold_floats
from nacre.core.rules.models import MDL02
from nacre.nac.rules.running import NAC46

if TYPE_CHECKING:
    from nacre.nac.run.model import NacModel

SUFFIX = ".nac"
# Arguments that say where something lies.
_ADDRESSES = frozenset({"indices", "index"})
# Calls whose result has the elements of their first argument.
_MOVES = frozenset({
    "alias", "clone", "contiguous", "detach", "expand", "flatten", "narrow", "permute", "pass",
    "repeat", "reshape", "select", "slice", "squeeze", "t", "transpose", "unflatten", "unsqueeze",
    "view", "_unsafe_view",
})  # fmt: skip


def _nac(file: ModelFile) -> Module:
    from nacre.nac.run.model import load

    return fold_floats(lift_with_shapes(load(file.path), file.shapes))


READERS: Mapping[str, Reader] = MappingProxyType({**CORE_READERS, SUFFIX: _nac})


def read_model(
    path: str | Path,
    shapes: Shapes | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
) -> Module:
    """A model from a file of any kind, as `core.models.read_model` with one more suffix."""
    return read_known(path, shapes, progress, warn, readers=READERS)


def lift_with_shapes(model: NacModel, shapes: Shapes | None = None) -> Module:
    """The module of a model; `shapes` are for inputs of which the file does not say the type.

    InputError has all that is wrong, missing shapes included.
    """
    from nacre.nac.program.lift import lift

    given = dict(shapes or {})
    findings = [*_misfitting_shapes(model, given), *_missing_shapes(model, given)]
    if findings:
        raise InputError(findings)
    addresses = _address_instructions(model)
    types = {
        one.name: TensorType("i64" if one.instruction in addresses else "f32", tuple(shape))
        for one in model.all_inputs
        for shape in (given.get(one.name),)
        if shape is not None and (one.dtype is None or one.shape is None)
    }
    return lift(model, types)


def _missing_shapes(model: NacModel, given: Shapes) -> list[Diagnostic]:
    """Inputs without a type that nobody gives a shape."""
    findings = []
    for one in model.all_inputs:
        is_open = one.dtype is None or one.shape is None
        if is_open and not one.is_optional and one.name not in given:
            message = f"the file does not say the type of input {backquote(one.name)}"
            name = backquote(one.name).strip("`")
            shape = setting(f"`--shape {name}=1x3`", f'`shapes={{"{name}": (1, 3)}}`')
            help_ = f"give its shape: {shape}"
            findings.append(model.finding(one.instruction, NAC46, message, help_))
    return findings


def _misfitting_shapes(model: NacModel, given: Shapes) -> list[Diagnostic]:
    """Shapes of inputs that are not there, or have another."""
    known = {one.name: one for one in model.all_inputs}
    findings = []
    for name, shape in given.items():
        one = known.get(name)
        if one is None:
            hint = did_you_mean(name, known) or f"expected {', '.join(map(backquote, known))}"
            findings.append(model.finding(0, MDL02, f"there is no input {backquote(name)}; {hint}"))
        elif one.shape is not None and tuple(shape) != one.shape:
            message = (
                f"input {backquote(name)} has the shape {list(one.shape)}, found {list(shape)}"
            )
            help_ = "build the file from its model with other shapes"
            findings.append(model.finding(one.instruction, MDL02, message, help_))
    return findings


def _address_instructions(model: NacModel) -> set[int]:
    """The instructions whose results say where something lies."""
    from nacre.nac.run.program import refs_of
    from nacre.nac.tools.genome import gene

    addresses: set[int] = set()
    for index in reversed(range(len(model.program))):
        instruction = model.program[index]
        if instruction.call is None:
            continue
        is_moved = index in addresses and gene(instruction.call.name) in _MOVES
        for at, operand in enumerate(instruction.operands):
            if operand.name in _ADDRESSES or (is_moved and at == 0):
                addresses.update(refs_of(operand.source))
    return addresses
