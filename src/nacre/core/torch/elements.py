"""Element types of PyTorch and of Core IR, and tensors as arrays."""

from __future__ import annotations

from typing import Any

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.dtypes import WORDS_OF_DTYPES, element_type
from nacre.core.torch.library import torch
from nacre.core.values import Array


def element_name(dtype: Any) -> str:  # noqa: ANN401 - torch.dtype
    """The element type of a tensor type."""
    return element_type(str(dtype).removeprefix("torch."))


def dtype_of(element: str) -> Any:  # noqa: ANN401 - torch.dtype
    """The tensor type of an element type."""
    return getattr(torch(), WORDS_OF_DTYPES[element])


def array_of(tensor: Any) -> Array:  # noqa: ANN401 - torch.Tensor
    """The elements of a tensor, copied: whoever owns it may go on training."""
    library = torch()
    wanted = GRAPH_TYPES[element_name(tensor.dtype)].dtype
    plain = tensor.detach().cpu().contiguous()
    if wanted.kind == "V":  # NumPy lacks it: the same bits as integers, then under their own type
        bits = {1: library.uint8, 2: library.int16}[wanted.itemsize]
        array: Array = plain.view(bits).numpy().view(wanted).copy()
        return array
    copied: Array = plain.numpy().astype(wanted, copy=True)
    return copied
