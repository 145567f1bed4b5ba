"""Nodes on known tensors: computed by PyTorch itself, at import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nacre.core.aten.call import Value
from nacre.core.aten.remedies import OTHERWISE
from nacre.core.opaque.calls import ComplexValue
from nacre.core.torch.library import silenced, torch
from nacre.core.unsupported import Unsupported

_MOST_ELEMENTS = 1 << 28  # a file must not fill the memory by asking for zeros
# Calls without a tensor among their arguments that only make one: a file may name others.
FACTORIES = frozenset(
    {
        "arange.default", "arange.start", "arange.start_step", "empty.memory_format",
        "empty_strided.default", "eye.default", "eye.m", "full.default", "linspace.default",
        "logspace.default", "ones.default", "scalar_tensor.default", "tril_indices.default",
        "triu_indices.default", "zeros.default", "empty_permuted.default", "hann_window.default",
        "hamming_window.default",
    }
)  # fmt: skip


# Calls whose result has elements of their first argument, in another order, shape or type.
_LAYOUTS = frozenset(
    {
        "_to_copy", "_unsafe_view", "alias", "as_strided", "chunk", "clone", "contiguous", "detach",
        "embedding", "expand", "flatten", "flip", "gather", "index", "index_select", "lift_fresh",
        "lift_fresh_copy", "movedim", "narrow", "permute", "repeat", "reshape", "select", "slice",
        "split", "split_with_sizes", "squeeze", "t", "to", "transpose", "type_as", "unbind",
        "unflatten", "unsqueeze", "view",
    }
)  # fmt: skip


def is_layout(key: str) -> bool:
    """Whether a call only lays elements of its first argument out anew."""
    name = key.partition(".")[0]
    return name in _LAYOUTS or name.removesuffix("_copy") in _LAYOUTS


def can_fold(key: str, target: Any, arguments: Any, result: Any) -> bool:  # noqa: ANN401
    """Whether a call can be computed now: every tensor is known, and nothing is drawn."""
    library = torch()
    leaves = list(leaves_of(arguments))
    if any(isinstance(leaf, Value | ComplexValue) for leaf in leaves):
        return False
    has_tensor = any(isinstance(leaf, library.Tensor) for leaf in leaves)
    if target.namespace != "aten" or not (has_tensor or key in FACTORIES):
        return False
    is_drawn = library.Tag.nondeterministic_seeded in target.tags
    if is_drawn or target._schema.is_mutable:
        return False
    sizes = [getattr(leaf, "shape", ()) for leaf in leaves_of(result)]
    return all(_count(size) <= _MOST_ELEMENTS for size in sizes)


# Calls whose elements follow from a shape alone, with the number or the argument that fills them.
_FILLED: Mapping[str, float | str] = {
    **dict.fromkeys(("zeros_like.default", "new_zeros.default"), 0),
    **dict.fromkeys(("empty_like.default", "new_empty.default"), 0),  # what nothing fills
    **dict.fromkeys(("ones_like.default", "new_ones.default"), 1),
    **dict.fromkeys(("full_like.default", "new_full.default"), "fill_value"),
    "fill.Scalar": "value",
}


def fill(key: str, given: Mapping[str, Any], result: Any) -> Any:  # noqa: ANN401 - torch.Tensor
    """The tensor that a call fills with one number; None where it is no such call."""
    number = _FILLED.get(key)
    number = given[number] if isinstance(number, str) else number
    if not isinstance(number, int | float) or _count(result.shape) > _MOST_ELEMENTS:
        return None
    return torch().full(tuple(result.shape), number, dtype=result.dtype)


def fold(target: Any, args: Any, kwargs: Any) -> Any:  # noqa: ANN401 - as the node has them
    """What a call gives."""
    try:
        with torch().no_grad(), silenced():
            kept = {k: v for k, v in kwargs.items() if k != "device"}
            if "device" in kwargs:
                kept["device"] = "cpu"
            return target(*args, **kept)
    except Exception as error:  # whatever PyTorch's kernels raise
        raise Unsupported(f"PyTorch cannot compute it: {first_line(error)}", OTHERWISE) from None


def first_line(error: BaseException) -> str:
    """The first line of what PyTorch says, not longer than a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__


def leaves_of(nested: Any) -> Iterator[Any]:  # noqa: ANN401 - nested lists
    """Everything in lists of lists."""
    if isinstance(nested, list | tuple):
        for part in nested:
            yield from leaves_of(part)
    elif isinstance(nested, dict):
        yield from leaves_of(list(nested.values()))
    else:
        yield nested


def _count(shape: Any) -> int:  # noqa: ANN401 - torch.Size
    count = 1
    for dim in shape:
        count *= dim if isinstance(dim, int) else 1  # it depends on elements, which are bounded
    return count
