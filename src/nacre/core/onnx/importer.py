"""From an ONNX model to a module: what is read, what is bound, what stands in the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from nacre.base.diagnostics import InputError, Warn
from nacre.base.excerpt import backquote
from nacre.core.importing.model_builder import ModelBuilder
from nacre.core.module import Module
from nacre.core.onnx.bindings import bind_inputs
from nacre.core.onnx.control.scopes import LostTensor
from nacre.core.onnx.defaults import warn_of_fixed_inputs
from nacre.core.onnx.encodings.encoded_model import apply_encodings
from nacre.core.onnx.encodings.encodings import read_encodings
from nacre.core.onnx.functions import find_recursion, local_functions
from nacre.core.onnx.layouts import shared_initialisers
from nacre.core.onnx.outputs import module_of
from nacre.core.onnx.reading.files import OnnxModel, parse_model, read_model
from nacre.core.onnx.reading.nodes import opsets_of
from nacre.core.onnx.reading.schemas import opset_problem
from nacre.core.onnx.reporting import RENAME
from nacre.core.onnx.states import match_states
from nacre.core.onnx.walk import Walk


def from_onnx(
    source: str | Path | bytes,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    progress: Callable[[int, int], None] | None = None,
    warn: Warn | None = None,
    keep_parameters: bool = False,
    keep_unknown: bool = False,
    encodings: str | Path | None = None,
) -> Module:
    """An ONNX model as a module of `nacre-1`; InputError lists all that stands in the way.

    `shapes` gives sizes to inputs whose dimensions the model leaves open; `constants` binds inputs
    to values for good, such as one that holds a shape. `progress` is told how many nodes of how
    many are in, `warn` what is odd about the model but does not stand in the way. What depends on
    initialisers alone is computed now; with `keep_parameters` by the module, where they are floats,
    so that they can be changed in it. With `keep_unknown` nodes that nothing knows become `Opaque`
    operations, where the model says the types of their results. `encodings` is a file of AIMET's:
    tensors of a float model that it names are stored so, as in a model that comes quantised.
    """
    walked = walk_model(
        source, shapes, constants, progress, keep_parameters, keep_unknown, encodings
    )
    return finish_module(*walked, warn)


def finish_module(walk: Walk, graph: Any, warn: Warn | None) -> Module:  # noqa: ANN401
    """The module of a walk, and what is odd about it told; InputError lists what was found."""
    if walk.findings:
        raise InputError(walk.findings)
    module = module_of(walk, graph)
    if warn is not None:
        for odd in walk.odd:
            warn(odd)
    return module


def walk_model(
    source: str | Path | bytes,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    progress: Callable[[int, int], None] | None = None,
    keep_parameters: bool = False,
    keep_unknown: bool = False,
    encodings: str | Path | None = None,
) -> tuple[Walk, Any]:
    """The walk over a model's graph, whatever it found, and the graph."""
    if isinstance(source, bytes):
        read, name, folder = parse_model(source, "<model>"), "<model>", None
    else:
        path = Path(source)
        read, name, folder = read_model(path), str(path), path.parent
    if encodings is not None:
        apply_encodings(read, folder, read_encodings(Path(encodings)))
    return walk_read_model(
        read, name, folder, shapes, constants, progress, keep_parameters, keep_unknown
    )


def walk_read_model(
    read: OnnxModel,
    name: str,
    folder: Path | None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    progress: Callable[[int, int], None] | None = None,
    keep_parameters: bool = False,
    keep_unknown: bool = False,
) -> tuple[Walk, Any]:
    """The same of a model that has been read, whose weights may lie in a folder."""
    model = read.proto
    functions, twice = local_functions(model.functions)
    endless, recursions = find_recursion(functions)
    finite = {key: function for key, function in functions.items() if key not in endless}
    builder, opsets = ModelBuilder(keep_parameters), opsets_of(model.opset_import)
    walk = Walk(name, folder, opsets, finite, endless, read.detached, progress, builder=builder)
    walk.keep_unknown = keep_unknown
    if keep_parameters:
        builder.shared |= shared_initialisers(model.graph)
    for repeated in twice:
        walk.unsound(f"the function {backquote(repeated)} is defined twice", RENAME)
    for ring in recursions:
        walk.unsound(ring, "ONNX has no recursion: write what repeats as a Loop")
    wrong = opset_problem(walk.opsets, model.graph.node)
    if wrong is not None:
        walk.unsound(str(wrong), wrong.help)
        return walk, model.graph
    if not model.graph.output:
        help_ = "name the tensors that are wanted in `graph.output`"
        walk.unsound("the model has no output", help_)
    bound, problems = bind_inputs(model.graph.input, constants or {}, name)
    walk.tensors.update({given: bound.get(given, LostTensor()) for given in constants or {}})
    walk.bound = frozenset(bound)
    walk.findings += problems
    walk.states = match_states(walk, model)
    walk.odd += warn_of_fixed_inputs(model, {*walk.states, *(constants or {})}, name)
    walk.import_graph(model.graph, shapes or {})
    return walk, model.graph
