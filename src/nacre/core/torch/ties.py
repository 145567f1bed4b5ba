"""A tensor that a program holds under several names, made one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from nacre.core.torch.library import silenced, torch

# Under which of its names a tensor stays, the first one first.
_KINDS = ("PARAMETER", "BUFFER", "CONSTANT_TENSOR")

Ties = Mapping[str, tuple[str, ...]]


def untie(program: Any) -> Any:  # noqa: ANN401 - ExportedProgram
    """The program with one input for each tensor.

    PyTorch makes no functions of programs that change a tensor while some tensor has two names,
    as tied weights have, or a cache that is a buffer and an attribute of something else.
    """
    twins = _duplicate_inputs(program)
    if not twins:
        return program
    with silenced():
        graph_module = copy.deepcopy(program.graph_module)
    nodes = {node.name: node for node in graph_module.graph.nodes}
    for twin, kept in twins.values():
        nodes[twin.arg.name].replace_all_uses_with(nodes[kept.arg.name])
        graph_module.graph.erase_node(nodes[twin.arg.name])
    graph_module.recompile()
    return _without_duplicates(program, graph_module, twins)


def ties_of(program: Any) -> Ties:  # noqa: ANN401 - ExportedProgram
    """All names of each tensor that has several in the state of a program, by each of them."""
    names: dict[object, list[str]] = {}
    for name, tensor in program.state_dict.items():
        if not _has_no_address(tensor):
            names.setdefault(_key(tensor), []).append(name)
    return {name: tuple(tied) for tied in names.values() if len(tied) > 1 for name in tied}


def _key(tensor: Any) -> object:  # noqa: ANN401 - torch.Tensor
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype


def _duplicate_inputs(program: Any) -> dict[str, tuple[Any, Any]]:  # noqa: ANN401 - ExportedProgram
    """By target: inputs that are another one's tensor, with that one."""
    first: dict[object, Any] = {}
    duplicates: dict[str, tuple[Any, Any]] = {}
    specs = [s for s in program.graph_signature.input_specs if s.kind.name in _KINDS]
    for spec in sorted(specs, key=lambda s: _KINDS.index(s.kind.name)):
        tensor = program.state_dict.get(spec.target, program.constants.get(spec.target))
        if tensor is None or _has_no_address(tensor):
            continue
        key = _key(tensor)
        if key in first:
            duplicates[spec.target] = (spec, first[key])
        else:
            first[key] = spec
    return duplicates


def _has_no_address(tensor: Any) -> bool:  # noqa: ANN401 - torch.Tensor
    library = torch()
    is_fake = tensor.is_meta or isinstance(tensor, library._subclasses.FakeTensor)
    return bool(is_fake or tensor.numel() == 0 or tensor.layout != library.strided)


def _without_duplicates(program: Any, graph_module: Any, twins: dict[str, tuple[Any, Any]]) -> Any:  # noqa: ANN401
    library = torch()
    signature = copy.deepcopy(program.graph_signature)
    signature.input_specs = [s for s in signature.input_specs if s.target not in twins]
    for spec in signature.output_specs:
        if spec.target in twins:
            spec.target = twins[spec.target][1].target
    return library.export.ExportedProgram(
        root=graph_module,
        graph=graph_module.graph,
        graph_signature=signature,
        state_dict={k: v for k, v in program.state_dict.items() if k not in twins},
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants={k: v for k, v in program.constants.items() if k not in twins},
        verifiers=[program.verifier],
    )
