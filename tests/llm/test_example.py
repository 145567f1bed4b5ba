"""The example asks a model, by the evaluator and by plans."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.llm.gguf_bytes import ARRAY, I32, TEXT, U32, Pair
from tests.llm.reference import Sizes, llama_bytes

EXAMPLE = Path(__file__).parents[2] / "examples/chat_with_gguf.py"
LETTERS = [*"abcdefghijklmnoprstuwyzFPTW?", "Ġ"]
KEYS = [
    Pair("tokenizer.ggml.model", TEXT, "gpt2"),
    Pair("tokenizer.ggml.pre", TEXT, "gpt-2"),
    Pair("tokenizer.ggml.tokens", ARRAY, LETTERS),
    Pair("tokenizer.ggml.token_type", ARRAY, [1] * len(LETTERS), I32),
    Pair("tokenizer.ggml.eos_token_id", U32, 0),
]


@pytest.mark.heavy("two plans are compiled")
def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "letters.gguf"
    path.write_bytes(llama_bytes(Sizes(layers=1, vocabulary=len(LETTERS), context=256), pairs=KEYS))
    main = runpy.run_path(str(EXAMPLE))["main"]
    main(str(path), None, 4)
    by_evaluator = capsys.readouterr().out.splitlines()
    main(str(path), "npm4k", 4)
    by_plans = capsys.readouterr().out.splitlines()
    assert by_plans[0] == by_evaluator[0]
    assert by_plans[1].endswith(" tokens/s on npm4k")
