"""What can be wrong with an ONNX model, and what helps."""

from __future__ import annotations

from nacre.base.hints import setting
from nacre.core.importing.findings import finding as finding  # noqa: PLC0414 - of these from here
from nacre.core.importing.findings import refusal as refusal  # noqa: PLC0414

# A reason that several operations have.
BY_ELEMENTS = "the shape of its result depends on elements that are computed when the model runs"
MISFITTING = "its operands and attributes do not fit each other"
# What helps, where several findings have the same remedy.
CONSTANT = setting("`--constant NAME=FILE.npy`", '`constants={"NAME": array}`')
BIND = f"bind the inputs that it is computed from to values: {CONSTANT}"
INFERENCE = "export the model for inference: in PyTorch, after `module.eval()`"
CAST = "cast to a type that Core IR has before the node, and back after it"
TENSORS = "keep the tensors apart, without SequenceConstruct, SplitToSequence or Optional"
NOT_EMPTY = "Core IR has no tensors without elements: cut the part out of the model that makes it"
SMALLER = "cut the model before this node, or make its operands smaller"
CHECK = "write the model anew; `onnx.checker.check_model(model, full_check=True)` checks the result"


class Unsound(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A node or tensor that breaks a rule of ONNX itself, and how to mend it."""

    def __init__(self, reason: str, help: str = CHECK) -> None:
        super().__init__(reason)
        self.help = help
