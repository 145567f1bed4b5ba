"""What helps, where several calls have the same remedy."""

from __future__ import annotations

EVAL = "call `module.eval()` before"
NOT_EMPTY = "leave the part out of the model that makes it: it computes nothing"
OTHERWISE = "write it by other calls of PyTorch, or compute it before or behind the model"
SCALAR = ("it is of a scalar", "leave it out")
EMPTY = ("the result has no elements; Core IR has no empty tensors", NOT_EMPTY)
