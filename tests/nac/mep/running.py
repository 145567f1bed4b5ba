"""What the tests of plans share: running text, expecting a code, small models and tokenizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.nac.mep import Machine, assemble
from nacre.nac.mep.values import Fault


def run(text: str, inputs: Mapping[str, Any] | Sequence[Any] | None = None, **given: Any) -> Any:  # noqa: ANN401
    """What the plan of a text returns."""
    return Machine(assemble(text), **given).run(inputs)


def refused(text: str, inputs: Any = None, **given: Any) -> Diagnostic:  # noqa: ANN401
    """The first finding of a plan that does not end well."""
    with pytest.raises(InputError) as caught:
        run(text, inputs, **given)
    found: Diagnostic = caught.value.diagnostics[0]
    return found


def codes_of(do: Callable[[], object]) -> list[str]:
    """The codes that something is refused with; none where it is not."""
    try:
        do()
    except InputError as error:
        return [found.code for found in error.diagnostics]
    except Fault as fault:
        return [fault.rule.code]
    return []


def returned(*lines: str, arrays: Mapping[str, Any] | None = None, **given: Any) -> Any:  # noqa: ANN401
    """The value that lines leave in `%out`; arrays are in slots of their names."""
    loads = [f'res_load_array %{name}, "{name}"' for name in arrays or {}]
    (made,) = run("\n".join([*loads, *lines, "return [%out]"]), arrays=arrays, **given)
    return made


class Alphabet:
    """A tokenizer with an id for each letter."""

    def encode(self, text: str) -> list[int]:
        return [ord(c) - ord("a") for c in text]

    def decode(self, ids: list[int]) -> str:
        return "".join(chr(ord("a") + i) for i in ids)


class Successor:
    """A model of language that knows one thing: after a letter comes the next one."""

    inputs: tuple[str, ...] = ("ids",)

    def __init__(self, size: int = 26) -> None:
        self.size = size
        self.lengths: list[int] = []

    def run(self, inputs: Mapping[str, Any]) -> list[Any]:
        ids = inputs["ids"]
        self.lengths.append(ids.shape[1])
        logits = np.zeros((1, ids.shape[1], self.size), np.float32)
        for place, id_ in enumerate(ids[0]):
            logits[0, place, (id_ + 1) % self.size] = 4
        return [logits]
