"""Parameters that a graph lays out in several ways, or repeats: there each use is computed.

A parameter that is transposed on its way to its only use can be a constant in that layout. One of
which an element stands in several places must stay one tensor, from which the module computes the
others: training changes them together.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Iterator, Sequence
from math import prod
from typing import Any

from nacre.core.torch.constants import Constants
from nacre.core.torch.folding import fold, is_layout
from nacre.core.torch.library import torch
from nacre.core.torch.nodes import key_of
from nacre.core.torch.regions import REGIONS

_MOST_TRACED = 1 << 26  # elements of a parameter that are numbered to see where they go
# Layouts that may have an element several times.
_REPEATING = frozenset({"as_strided", "embedding", "expand", "gather", "index", "index_select",
                        "repeat"})  # fmt: skip


def is_computed(constants: Constants, target: Any, args: Sequence[Any], results: Any) -> bool:  # noqa: ANN401
    """Whether a module computes a layout of its first argument, as others share its elements."""
    if not constants.is_changeable(args[0]):
        return False
    if constants.is_derived(args[0]) or constants.is_shared(args[0]):
        return True
    is_one = isinstance(results, torch().Tensor)
    return is_one and _repeats_elements(target, args, results)


def _repeats_elements(target: Any, args: Sequence[Any], result: Any) -> bool:  # noqa: ANN401
    """Whether a layout of its first argument has an element of it several times."""
    key = key_of(target)
    if key.partition(".")[0].removesuffix("_copy") not in _REPEATING:
        return False
    count = args[0].numel()
    if result.numel() > count:
        return True
    if count > _MOST_TRACED:
        return False
    numbers = torch().arange(count).reshape(tuple(args[0].shape))
    places = fold(target, [numbers, *args[1:]], {})
    return bool(places.unique().numel() < places.numel())


def shared_parameters(graph: Any, names: Container[str]) -> set[str]:  # noqa: ANN401 - fx.Graph
    """Of these nodes, those with elements that several layouts have."""
    return {node.name for node in graph.nodes if node.name in names and _is_shared(node)}


def _is_shared(node: Any) -> bool:  # noqa: ANN401 - fx.Node
    ends = list(dict.fromkeys(_ends(node)))
    if any(_is_region(user) for end in ends for user in end.users):
        return True  # graphs inside of others may lay it out too
    if len(ends) < 2:
        return False
    sizes = [prod(end.meta["val"].shape) for end in ends]
    count = prod(node.meta["val"].shape)
    return sum(sizes) > count or (count <= _MOST_TRACED and _do_meet(node, ends, count))


def _ends(node: Any) -> Iterator[Any]:  # noqa: ANN401 - fx.Node
    """Layouts of a tensor that something else than a layout takes."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        for user in found.users:
            if _is_layout_of(user, found):
                waiting.append(user)
            else:
                yield found


def _is_layout_of(user: Any, node: Any) -> bool:  # noqa: ANN401 - fx.Nodes
    if user.op != "call_function" or user.args[:1] != (node,):
        return False
    return user.target is operator.getitem or is_layout(key_of(user.target))


def _is_region(user: Any) -> bool:  # noqa: ANN401 - fx.Node
    return user.op == "call_function" and key_of(user.target) in REGIONS


def _do_meet(node: Any, ends: Sequence[Any], count: int) -> bool:  # noqa: ANN401 - fx.Nodes
    """Whether two layouts have an element in common; True where that is not known."""
    library = torch()
    seen = library.zeros(count, dtype=library.bool)
    numbers = library.arange(count).reshape(tuple(node.meta["val"].shape))
    for end in ends:
        try:
            places = _traced(end, node, numbers)
        except Exception:  # an argument is a tensor that nobody knows here
            return True
        if seen[places].any():
            return True
        seen[places] = True
    return False


def _traced(end: Any, node: Any, numbers: Any) -> Any:  # noqa: ANN401 - fx.Nodes and a tensor
    """The numbers of the elements of a parameter, laid out as a node has them."""
    chain = []
    while end is not node:
        chain.append(end)
        end = end.args[0]
    found = numbers
    for step in reversed(chain):
        found = step.target(found, *step.args[1:], **step.kwargs)
    return found.reshape(-1)
