"""State that a model of ours keeps between runs: read back from the property of its file.

`to_onnx` writes a state as an input with a default and an output that is its next value; the
property `nacre.state` lists such pairs. The file may be a stranger's, and the list anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import finding
from nacre.core.onnx.onnx_node import describe_error
from nacre.core.onnx.reading.files import STATE
from nacre.core.rules.onnx import ONX09
from nacre.core.values import Array

if TYPE_CHECKING:
    from nacre.core.onnx.walk import Walk

_FORM = '[{"input": "NAME", "output": "NAME"}]'
_MEND = f"write the model with `to_onnx` again, or take the property `{STATE}` out of its file"


class _StateProblem(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """What is wrong with the list of states."""


def match_states(walk: Walk, model: Any) -> dict[str, str]:  # noqa: ANN401 - onnx.ModelProto
    """The outputs that are the next values of states, by the inputs that they feed.

    An input that is bound to a value has none: it is the same in every run.
    """
    texts = [prop.value for prop in model.metadata_props if prop.key == STATE]
    try:
        pairs = [pair for text in texts for pair in _pairs(text)]
        _check(pairs, model.graph)
    except _StateProblem as problem:
        walk.findings.append(finding(ONX09, walk.name, str(problem), _MEND))
        return {}
    return {given: following for given, following in pairs if given not in walk.bound}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        raise _StateProblem(
            f"the property `{STATE}` is {backquote(text)}, expected {_FORM}"
        ) from None
    for entry in entries if isinstance(entries, list) else [entries]:
        is_pair = isinstance(entry, dict) and entry.keys() == {"input", "output"}
        if not is_pair or not all(isinstance(name, str) for name in entry.values()):
            entry_text = backquote(json.dumps(entry))
            raise _StateProblem(
                f"the property `{STATE}` has the entry {entry_text}, expected {_FORM}"
            )
        yield entry["input"], entry["output"]


def _check(pairs: Sequence[tuple[str, str]], graph: Any) -> None:  # noqa: ANN401 - GraphProto
    """Raise _NoState where a pair names what the graph does not have."""
    inputs = {value.name for value in graph.input}
    outputs = {value.name for value in graph.output}
    held = {tensor.name for tensor in graph.initializer}
    held |= {tensor.values.name for tensor in graph.sparse_initializer}
    seen: set[str] = set()
    for given, following in pairs:
        if given not in inputs:
            raise _StateProblem(f"the state {backquote(given)} is no input of the model")
        if given not in held:
            raise _StateProblem(
                f"the state {backquote(given)} starts from nothing, expected a default"
            )
        if given in seen:
            raise _StateProblem(f"the state {backquote(given)} is listed twice")
        if following not in outputs:
            message = f"the next value {backquote(following)} of the state {backquote(given)}"
            raise _StateProblem(f"{message} is no output of the model")
        seen.add(given)
    if pairs and outputs <= {following for _, following in pairs}:
        raise _StateProblem("every output is the next value of a state, expected another one")


def keep_states(walk: Walk, following: Mapping[str, int], initial: Mapping[str, Array]) -> None:
    """Tell the builder of states, when every node is in."""
    for given, output in following.items():
        try:
            walk.builder.state(given, output, walk.builder.constant(initial[given]))
        except InputError as error:
            message = f"the state {backquote(given)}: {describe_error(error)}"
            walk.findings.append(finding(ONX09, walk.name, message, _MEND))
