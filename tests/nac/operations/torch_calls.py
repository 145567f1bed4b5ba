"""One call of ATen as a program, run by nacre, beside what PyTorch computes."""

from __future__ import annotations

from typing import Any

import torch

from nacre import nac
from nacre.core.values import Array
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.binding import Ref

Loose = Any


def _pairs(tensor: Loose) -> Loose:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def model_of(
    call: str, args: tuple[Loose, ...], named: dict[str, Loose], are_complex: list[bool]
) -> tuple[nac.NacModel, dict[str, Array]]:
    """A program of that call, and its inputs; `are_complex` has its results."""
    assembler = Assembler()
    feeds: dict[str, Array] = {}

    def argument(given: Loose) -> Loose:
        if isinstance(given, torch.Tensor):
            name = f"x{len(feeds)}"
            feeds[name] = _pairs(given).numpy()
            ref = assembler.input(name)
            to_complex = "aten.view_as_complex.default"
            return assembler.call(to_complex, ref) if given.is_complex() else ref
        if isinstance(given, torch.dtype):
            return str(given).removeprefix("torch.")
        return given

    flat: list[Loose] = []
    for given in (*args, *named.values()):
        is_tensors = isinstance(given, list) and any(isinstance(x, torch.Tensor) for x in given)
        flat += [argument(x) for x in given] if is_tensors else [argument(given)]
    flat = [tuple(x) if isinstance(x, list) else x for x in flat]
    made = assembler.call(f"aten.{call}", *flat)
    outputs = [_output(assembler, made, at, are_complex) for at in range(len(are_complex))]
    assembler.output(*outputs)
    return nac.load(nac.to_bytes(assembler.file())), feeds


def _output(assembler: Assembler, made: Ref, at: int, are_complex: list[bool]) -> Ref:
    one = assembler.call("getitem", made, at) if len(are_complex) > 1 else made
    return assembler.call("aten.view_as_real.default", one) if are_complex[at] else one


def compared(
    call: str, *args: Loose, count: int | None = None, **named: Loose
) -> list[tuple[Array, Array]]:
    """Pairs of what nacre and PyTorch compute; the first `count` of several results."""
    name, _, overload = call.partition(".")
    found = getattr(getattr(torch.ops.aten, name), overload)(*args, **named)
    is_list = isinstance(found, list | tuple)
    parts = list(found) if is_list else [found]
    expected = [_pairs(part).numpy() for part in parts]
    are_complex = [part.is_complex() for part in parts]
    model, feeds = model_of(call, args, named, are_complex[:count] if is_list else are_complex)
    return list(zip(model.run(feeds), expected, strict=False))
