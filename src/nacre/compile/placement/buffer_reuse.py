"""Tensors that take turns in one place: a result goes where an operand was that ends with it.

That is sound where every tile reads of the operand exactly what it writes of the result, and makes
the result of it: it is done with its part when it stores, and no other tile looks at that part. A
layer of several results may store one before it loads what only the others are made of.
"""

from __future__ import annotations

from collections.abc import Mapping

from nacre.compile.partition.layers import Access, Layer, element_bytes
from nacre.compile.partition.stage import Partition


def reuse_chains(
    partition: Partition, sizes: Mapping[int, int], lives: Mapping[int, tuple[int, int]]
) -> list[tuple[int, ...]]:
    """Tensors of some sizes in chains: each takes the place of the one before; most are alone."""
    follows: dict[int, int] = {}
    for index, layer in enumerate(partition.layers):
        for result in layer.results:
            access = result.access
            if access.tensor not in sizes or lives[access.tensor][0] != index:
                continue
            for tensor in layer.reads:
                is_over = tensor in sizes and lives[tensor][1] == index
                is_over = is_over and sizes[tensor] == sizes[access.tensor]
                if is_over and tensor not in follows and _is_tile_by_tile(layer, tensor, access):
                    follows[tensor] = access.tensor
                    break
    later = set(follows.values())
    return [_chain(tensor, follows) for tensor in sizes if tensor not in later]


def _chain(tensor: int, follows: Mapping[int, int]) -> tuple[int, ...]:
    found = [tensor]
    while found[-1] in follows:
        found.append(follows[found[-1]])
    return tuple(found)


def _is_tile_by_tile(layer: Layer, tensor: int, result: Access) -> bool:
    """Whether tiles read of a tensor what they write of another, byte for byte."""
    writes = [r for r in layer.results if r.access.tensor == result.tensor]
    if [r.access for r in writes] != [result]:
        return False
    needed = _needed_locals(layer, writes[0].local)
    return all(
        index in needed
        and not a.stays
        and (a.axes, a.strides, a.offset, a.image)
        == (result.axes, result.strides, result.offset, result.image)
        and element_bytes(a.elem) == element_bytes(result.elem)
        for index, a in enumerate(layer.operands)
        if a.tensor == tensor
    )


def _needed_locals(layer: Layer, local: int) -> frozenset[int]:
    """The values of a tile that one of them is made of, operands among them."""
    found = {local}
    for step in reversed(layer.steps):
        if step.output.local in found:
            found.update(operand.local for operand in step.inputs)
    return frozenset(found)
