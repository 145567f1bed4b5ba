"""Models of any kind as modules of Core IR, with the names that their weights have.

Importers make one constant of a weight wherever it came from; which one it is tells its elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.core.models import Progress, Shapes, Warn
from nacre.core.module import CoreOperation, Labels, Module
from nacre.core.values import Array, Literal
from nacre.nac.models import SUFFIX, lifted, read_model
from nacre.nac.rules.building import NAC50

if TYPE_CHECKING:
    from nacre.nac.run.model import NacModel

Named = Iterable[tuple[str, Array]]
Found = tuple[Module, Named]
_SCALARS = {"ConstI64": np.int64, "ConstF32": np.float32, "ConstF64": np.float64}


def module_of(
    source: object,
    shapes: Shapes | None = None,
    example_args: tuple[Any, ...] | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
) -> Module:
    """The module of a source, its weights labelled; InputError where it is no model."""
    if isinstance(source, Module):
        return source
    if is_nac(source):
        return lifted(loaded(source), shapes)
    if isinstance(source, str | Path):
        reader = {".onnx": _onnx, ".pt2": _archive}.get(Path(source).suffix.lower(), _other)
        module, weights = reader(Path(source), shapes, progress, warn)
    else:
        module, weights = _torch(source, example_args, shapes)
    return labelled(module, weights)


def is_nac(source: object) -> bool:
    """Whether a source is a file of NAC, read or not."""
    from nacre.nac.run.model import NacModel

    if isinstance(source, str | Path):
        return Path(source).suffix.lower() == SUFFIX
    return isinstance(source, NacModel)


def loaded(source: Any) -> NacModel:  # noqa: ANN401 - a path or a model
    """The model of such a source."""
    from nacre.nac.run.model import NacModel, load

    return source if isinstance(source, NacModel) else load(source)


def _other(
    path: Path, shapes: Shapes | None, progress: Progress | None, warn: Warn | None
) -> Found:
    return read_model(path, shapes, progress, warn), ()


def _onnx(path: Path, shapes: Shapes | None, progress: Progress | None, warn: Warn | None) -> Found:
    from nacre.core.onnx.importer import finished, walked

    walk, graph = walked(path, shapes, None, progress)
    module = finished(walk, graph, warn)
    known = ((t.name, walk.tensors.get(t.name)) for t in graph.initializer)
    return module, [(n, a) for n, a in known if isinstance(a, np.ndarray)]


def _archive(
    path: Path, shapes: Shapes | None, progress: Progress | None, warn: Warn | None
) -> Found:
    from nacre.core.torch.archive import read_program
    from nacre.core.torch.importer import from_torch

    program = read_program(path)
    return from_torch(program, shapes=shapes), _state_of(program)


def _torch(source: Any, example_args: tuple[Any, ...] | None, shapes: Shapes | None) -> Found:  # noqa: ANN401
    if not hasattr(source, "state_dict"):
        message = f"found a {type(source).__name__}, expected a model"
        help_ = "give a path (.onnx, .pt2, .core, .nac), a module of Core IR or one of PyTorch"
        raise refused(message, help_)
    from nacre.core.torch.importer import from_torch

    return from_torch(source, example_args or (), shapes=shapes), _state_of(source)


def _state_of(source: Any) -> Named:  # noqa: ANN401 - a module or a program of PyTorch
    from nacre.core.onnx.findings import NoForm
    from nacre.core.torch.elements import array_of, element_name

    state = source.state_dict if isinstance(source.state_dict, Mapping) else source.state_dict()
    for name, tensor in state.items():
        with suppress(NoForm):  # of a type that no constant has
            element_name(tensor.dtype)
            yield name, array_of(tensor)


def labelled(module: Module, weights: Named) -> Module:
    """The module, its constants under the names of the weights that they are."""
    names: dict[object, str] = {}
    for name, array in weights:
        names.setdefault(key_of(array), name)
    if not names:
        return module
    own = module.labels or Labels()
    nodes = dict(own.nodes)
    for op in module.operations:
        elements = elements_of(op)
        found = None if elements is None else names.get(key_of(elements))
        if found is not None:
            nodes[op.value_id] = found
    return replace(module, labels=Labels(own.outputs, nodes))


def key_of(array: Array) -> tuple[str, tuple[int, ...], bytes]:
    """What tells an array from others: arrays with the same one have the same elements."""
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return str(array.dtype), array.shape, blake2b(raw.data, digest_size=20).digest()


def elements_of(op: CoreOperation) -> Array | None:
    """The elements of a constant."""
    if op.opcode in _SCALARS:
        return np.array(op.attributes["value"], _SCALARS[op.opcode])
    data = op.attributes.get("data")
    return data.array if op.opcode == "ConstTensor" and isinstance(data, Literal) else None


def refused(message: str, help: str | None = None) -> InputError:
    """The refusal of what was asked for."""
    return InputError([NAC50.at(whole_file("<build>"), message, help=help)])
