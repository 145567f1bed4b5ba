"""What a walk over a graph reports: nodes refused, nodes broken, with the place of each."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.importing.model_builder import ModelBuilder
from nacre.core.onnx.control.scopes import LostTensor
from nacre.core.onnx.findings import Unsound, finding
from nacre.core.onnx.onnx_node import Tensor, describe_tensor
from nacre.core.onnx.reading.nodes import Node
from nacre.core.rules.onnx import ONX01, ONX04
from nacre.core.unsupported import Unsupported

RENAME = "rename one of them, and what uses it"
MOST_HINTS = 16
_MOST_NAMES = 2000  # that a wrong one is compared with
_MOST_SHOWN = 16  # operands of a node in a message
_NAMED = "the nodes of a graph must stand in the order in which they use each other"


@dataclass(frozen=True)
class Refusal:
    """A node without a form, and why."""

    node: Node
    reason: str
    diagnostic: Diagnostic


@dataclass(eq=False)
class Reports:
    """What has been found so far about the tensors and nodes of a model; one report a cause."""

    name: str
    builder: ModelBuilder = field(default_factory=ModelBuilder, kw_only=True)
    # None is an operand of a function that its call leaves out.
    tensors: ChainMap[str, Tensor | LostTensor | None] = field(
        default_factory=ChainMap, kw_only=True
    )
    findings: list[Diagnostic] = field(default_factory=list, kw_only=True)
    odd: list[Diagnostic] = field(default_factory=list, kw_only=True)  # warnings
    refused: list[Refusal] = field(default_factory=list, kw_only=True)
    protos: Sequence[Any] = field(default=(), kw_only=True)  # the nodes of the graph
    holders: tuple[Node, ...] = field(default=(), kw_only=True)  # the nodes around, outermost first

    def name_hint(self, name: str) -> str:
        """What a name that nothing defines may have meant: looked up for the first few only."""
        if len(self.findings) >= MOST_HINTS or self._is_defined_later(name):
            return _NAMED
        return did_you_mean(name, islice(self.tensors, _MOST_NAMES)) or _NAMED

    def _is_defined_later(self, name: str) -> bool:
        """Whether a node that comes later defines a name."""
        return any(name in proto.output for proto in self.protos)

    def mark_lost(self, names: Iterable[str]) -> None:
        """Let names stand for what a node should have made, where they have no tensor."""
        for name in names:
            self.tensors.setdefault(name, LostTensor())

    def refuse(
        self,
        node: Node,
        operands: Sequence[Tensor | None],
        problem: Unsupported,
        place: int | None = None,
    ) -> None:
        """Report a node without a form, at a place among the findings, else behind them."""
        message = f"{self._describe(node, operands)}: {problem.reason}"
        diagnostic = finding(ONX01, self.name, message, problem.help)
        self.findings.insert(len(self.findings) if place is None else place, diagnostic)
        self.refused.append(Refusal(node, problem.reason, diagnostic))
        self.mark_lost(node.outputs)

    def report_unsound(
        self, node: Node, operands: Sequence[Tensor | None], reason: str, help: str
    ) -> None:
        """Report a node that breaks a rule of ONNX."""
        message = f"{self._describe(node, operands)}: {reason}"
        self.findings.append(finding(ONX04, self.name, message, help))
        self.mark_lost(node.outputs)

    def _describe(self, node: Node, operands: Sequence[Tensor | None]) -> str:
        """A node with the types of its operands, its opset and the nodes around it."""
        shown = [
            "-" if o is None else _operand_type(o, self.builder) for o in operands[:_MOST_SHOWN]
        ]
        more = ["..."] if len(operands) > _MOST_SHOWN else []
        types = ", ".join([*shown, *more])
        return f"{node.title} of ({types}), opset {node.opset}{self._enclosing_nodes()}"

    def unsound(self, message: str, help: str) -> None:
        """Report what breaks a rule of ONNX."""
        self.findings.append(finding(ONX04, self.name, f"{message}{self._enclosing_nodes()}", help))

    def _enclosing_nodes(self) -> str:
        return "".join(f", in {holder.title}" for holder in reversed(self.holders))


def find_repeated(names: Iterable[str]) -> list[str]:
    """The names that are there more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def require_distinct(names: Iterable[str], whose: str) -> None:
    """Raise Unsound where two inputs have one name."""
    for name in find_repeated(names):
        raise Unsound(f"{whose} has two inputs {backquote(name)}", RENAME)


def _operand_type(operand: Tensor, builder: ModelBuilder) -> str:
    return describe_tensor(builder.type_of(operand) if isinstance(operand, int) else operand)
