"""Models in memory that are none, or whose weights cannot be had: refused by code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.llm.checkpoint.checkpoint import checkpoint_of
from nacre.llm.gguf.file import parse_gguf
from nacre.llm.model.runner import Decoder
from nacre.llm.nac_file.build import build_nac
from tests.llm.checkpoint.folders import llama_arrays, llama_config
from tests.llm.reference import Sizes, llama_bytes, random_weights, reference_logits

SIZES = Sizes()


class Tensor:
    """As much of PyTorch's as is asked for."""

    def __init__(self, array: np.ndarray, *, is_meta: bool = False) -> None:
        self._array, self.is_meta, self.dtype = array, is_meta, array.dtype
        self.shape = array.shape

    def dim(self) -> int:
        return self._array.ndim

    def is_floating_point(self) -> bool:
        return self._array.dtype.kind == "f"

    def detach(self) -> Tensor:
        return self

    cpu = float = detach

    def numpy(self) -> np.ndarray:
        return self._array


class Model:
    """A model by its configuration and its weights."""

    def __init__(self, state: Any, said: Any = None) -> None:  # noqa: ANN401
        self._state, self._said = state, llama_config(SIZES) if said is None else said
        self.config = self

    def to_dict(self) -> Any:  # noqa: ANN401
        return self._said

    def state_dict(self) -> Any:  # noqa: ANN401
        return self._state


def state(**changed: object) -> Mapping[str, object]:
    found: dict[str, object] = {key: Tensor(value) for key, value in llama_arrays(SIZES).items()}
    return found | {key.replace("__", "."): value for key, value in changed.items()}


def logits_of(model: object) -> np.ndarray:
    return Decoder.from_gguf(checkpoint_of(model)).runner(8).feed([3, 1])


def test_a_model_is_taken_also_from_behind_a_compiled_one() -> None:
    class Compiled:
        _orig_mod = Model(state())

    expected = reference_logits(random_weights(SIZES), SIZES, [3, 1])[-1]
    for model in (Model(state()), Compiled()):
        assert np.abs(logits_of(model) - expected).max() < 1e-4


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Model(None), "LLM01"),
        (Model(state(), 3), "LLM01"),
        (Model(state(model__norm__weight=Tensor(np.ones(16), is_meta=True))), "LLM03.*`meta`"),
        (Model(state(model__norm__weight=Tensor(np.ones(16, np.int8)))), "LLM03.*int8"),
        (Model(state(model__norm__weight=(1, 2))), "LLM03.*a tuple"),
        (Model({3: Tensor(np.ones(3))}), "LLM0[34]"),
    ],
)
def test_what_cannot_be_taken_is_refused(model: Model, said: str) -> None:
    with pytest.raises(InputError, match=said):
        logits_of(model)


@pytest.mark.parametrize("context", ["12", None, 1.5, True])
def test_a_context_is_a_whole_number(context: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match="LLM06"):
        build_nac(parse_gguf(llama_bytes(SIZES)), context)
