"""Modules, programs and files as one thing: a program of `torch.export` with static shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from nacre.core.aten.catalogue import handlers
from nacre.core.aten.refusals import REFUSED
from nacre.core.importing.findings import refusal
from nacre.core.opaque.calls import OpaqueCallNames
from nacre.core.rules.torch import TCH04, TCH06
from nacre.core.torch.archive import read_program
from nacre.core.torch.checks import keep_checks
from nacre.core.torch.decompositions.catalogue import decompositions
from nacre.core.torch.decompositions.table import PYTORCHS
from nacre.core.torch.folding import first_line
from nacre.core.torch.library import silenced, torch
from nacre.core.torch.nodes import key_of
from nacre.core.torch.opaque_calls import file_name
from nacre.core.torch.remedies import place_of_error
from nacre.core.torch.sizes import Shapes, examples_of
from nacre.core.torch.ties import Ties, ties_of, untie

# By what PyTorch's message has in it.
_ADVICE = {
    "ata-dependent": "choose by `torch.where`, and index by tensors, not by their elements",
    "aten.equal": "compare by `(a == b).all()`, and choose by `torch.where`",
    "DynamicOutputShape": "keep shapes fixed, and mask what does not count: `torch.where`",
    "UnbackedSymbol": "keep shapes fixed, and mask what does not count: `torch.where`",
    "zeros(): argument": "leave `pack_padded_sequence` out: mask what is behind the end",
    "is mutated": "keep it by `module.register_buffer(name, tensor)`",
    "ScriptModule": "export the module that it was made of",
    "missing": "give the arguments of `forward` as `example_args` and `example_kwargs`",
}


# Calls that PyTorch is left to write by another: a plain name is what people know, and windows of
# unequal sizes are for one of our own functions.
_WRITTEN = frozenset(
    {
        "__and__.Scalar", "__and__.Tensor", "__or__.Scalar", "__or__.Tensor", "__xor__.Scalar",
        "__xor__.Tensor", "adaptive_max_pool1d.default", "clip.default", "max.other", "min.other",
        "true_divide.Tensor", "type_as.default",
    }
)  # fmt: skip


def program_of(
    source: Any,  # noqa: ANN401 - a module, a program, a path
    example_args: Sequence[Any],
    example_kwargs: Mapping[str, Any] | None,
    shapes: Shapes | None,
    opaque_calls: OpaqueCallNames | None = None,
) -> tuple[Any, str, Ties]:
    """The program of a source, with only such calls as handlers know where that is possible.

    With it, what it is called, and all names of tensors that have several. Calls that are kept, by
    their names in files, are not written by others.
    """
    library, args, kwargs = torch(), tuple(example_args), dict(example_kwargs or {})
    if isinstance(source, str | Path):
        name = str(source)
        program = read_program(Path(source))
    elif isinstance(source, library.export.ExportedProgram):
        name, program = "<program>", source
    elif isinstance(source, library.nn.Module):
        name = type(source).__name__
        program = _export(source, args, kwargs, name)
    else:
        message = f"found a {type(source).__name__}, expected a module, a program or a path"
        help_ = "give a `torch.nn.Module`, what `torch.export.export` gives, or a `.pt2` file"
        raise refusal(TCH04, "torch", message, help_)
    if (args or kwargs) and not isinstance(source, library.nn.Module):
        message = "example arguments were given, but a program has its own"
        raise refusal(TCH06, name, message, "give sizes that it leaves open as `shapes`")
    examples = examples_of(program, shapes, name) if shapes else None
    if examples is not None:
        program = _export(program.module(check_guards=False), *examples, name)
    names = frozenset[str]() if opaque_calls is None else opaque_calls.names
    return _decompose(program, name, names), name, ties_of(program)


def _export(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:  # noqa: ANN401
    try:
        with silenced(), torch().no_grad():
            return torch().export.export(module, args, kwargs)
    except Exception as error:  # export raises whatever the module's code does
        place, kind = place_of_error(error), type(error).__name__
        message = f"`torch.export` refuses it{place}: {kind}: {first_line(error)}"
        raise refusal(TCH04, name, message, _advice(message)) from None


@cache
def _table(opaque_calls: frozenset[str]) -> Mapping[Any, Any]:
    """PyTorch's decompositions, less those of calls that are taken or refused as they are; ours."""
    table = torch().export.default_decompositions()
    known = (handlers().keys() | REFUSED.keys()) - _WRITTEN
    ours = {
        call: function
        for call, function in table.items()
        if not (call.namespace == "aten" and key_of(call) in known)
        and file_name(call) not in opaque_calls
    }
    everything = torch()._decomp.decomposition_table
    ours.update((call, everything[call]) for call in map(overload, PYTORCHS))
    ours.update((overload(key), function) for key, function in decompositions().items())
    return ours


def overload(key: str) -> Any:  # noqa: ANN401 - OpOverload
    """A call of ATen by its name."""
    name, _, form = key.partition(".")
    return getattr(getattr(torch().ops.aten, name), form)


def _decompose(program: Any, name: str, opaque_calls: frozenset[str]) -> Any:  # noqa: ANN401
    try:
        with silenced(), torch().no_grad(), keep_checks(program):
            decomposed = untie(program).run_decompositions(dict(_table(opaque_calls)))
            # What nobody uses, such as the places of a pooling, needs no form.
            decomposed.graph_module.graph.eliminate_dead_code()
            return decomposed
    except Exception as error:  # whatever PyTorch's passes raise
        message = f"it cannot be made of functions: {type(error).__name__}: {first_line(error)}"
        raise refusal(TCH04, name, message, _advice(message)) from None


def _advice(message: str) -> str:
    found = (help_ for word, help_ in _ADVICE.items() if word in message)
    return next(found, "write the part otherwise; `torch.export.export(module, args)` says more")
