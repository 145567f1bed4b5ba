"""What is wrong with a model: findings without a line, for a binary file has none."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.rules import Rule
from nacre.base.source import whole_file

# What helps, where several findings have the same remedy.
BIND = (
    "bind the inputs that it is computed from to values: `--constant NAME=FILE.npy`,"
    ' in Python `constants={"NAME": array}`'
)
INFERENCE = "export the model for inference: in PyTorch, after `module.eval()`"
CAST = "cast to a type that Core IR has before the node, and back after it"
TENSORS = "keep the tensors apart, without SequenceConstruct, SplitToSequence or Optional"
NOT_EMPTY = "Core IR has no tensors without elements: cut the part out of the model that makes it"
SMALLER = "cut the model before this node, or make its operands smaller"
CHECK = "write the model anew; `onnx.checker.check_model(model, full_check=True)` checks the result"


def finding(rule: Rule, name: str, message: str, help: str | None = None) -> Diagnostic:
    """A finding about a model."""
    return rule.at(whole_file(name), message, help=help)


def refusal(rule: Rule, name: str, message: str, help: str | None = None) -> InputError:
    """The exception that carries one finding."""
    return InputError([finding(rule, name, message, help)])


class NoForm(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A node that has no form in Core IR: why, and what would do instead."""

    def __init__(self, reason: str, rewrite: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.rewrite = rewrite


class Unsound(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A node or tensor that breaks a rule of ONNX itself, and how to mend it."""

    def __init__(self, reason: str, help: str = CHECK) -> None:
        super().__init__(reason)
        self.help = help
