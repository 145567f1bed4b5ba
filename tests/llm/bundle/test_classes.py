"""Plans for shorter texts: where they save cycles, they are made, taken and kept."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.llm.bundle import classes
from nacre.llm.bundle.classes import context_classes
from nacre.llm.bundle.llm_bundle import LlmBundle, build
from nacre.llm.estimate.bounds import estimate_model
from nacre.llm.estimate.sizes import ModelSizes
from nacre.llm.gguf.file import parse_gguf
from nacre.llm.model.config import config_of
from nacre.llm.model.runner import Decoder
from nacre.nem.model.target import builtin_device
from tests.llm.letters import LETTER_KEYS, LETTERS
from tests.llm.reference import Sizes, llama_bytes

FILE = parse_gguf(llama_bytes(LETTERS, pairs=LETTER_KEYS), "letters.gguf")
SMOLLM2 = Sizes(30, 576, 9, 3, 1536, 49_152, context=8192)
DDR = 1 << 34


def sizes_of(sizes: Sizes) -> ModelSizes:
    small = Sizes(**{**vars(sizes), "layers": 1, "width": 8, "heads": 2, "kv_heads": 1, "ff": 8})
    found = config_of(parse_gguf(llama_bytes(Sizes(**{**vars(small), "vocabulary": 8}))))
    names = ("layers", "width", "heads", "kv_heads", "ff", "vocabulary", "context")
    changed = {name: getattr(sizes, name) for name in names}
    kind = type(found)
    return ModelSizes(kind(**{**vars(found), **changed, "head_size": sizes.head}), is_tied=True)


def test_classes_are_those_by_which_a_token_reads_much_less() -> None:
    sizes, device = sizes_of(SMOLLM2), builtin_device("npm4k")
    found = context_classes(sizes, device, "w4f16", 4096, DDR)
    assert found == (512, 1024, 2048)
    assert context_classes(sizes, device, "w4f16", 512, DDR) == ()
    steps = estimate_model(sizes, device, "w4f16", context=4096, rows=found, ddr_bytes=DDR).decode
    cycles = [step.cycles for step in steps]
    assert all(a < 0.95 * b for a, b in pairwise(cycles))


def test_where_weights_outweigh_the_cache_there_is_one_plan() -> None:
    few_heads = Sizes(4, 512, 8, 1, 8192, 64_000, context=8192)
    found = context_classes(sizes_of(few_heads), builtin_device("npm4k"), "f16", 1024, DDR)
    assert found == ()


@pytest.fixture(scope="module")
def bundle() -> LlmBundle:
    patch = pytest.MonkeyPatch()
    patch.setattr(classes, "_FIRST", 4)
    patch.setattr(classes, "_WORTH", 1.0)
    try:
        return build(FILE, "npm4k", context=16, chunk=1)
    finally:
        patch.undo()


@pytest.mark.heavy("three plans are compiled")
def test_texts_pass_from_plan_to_plan(bundle: LlmBundle) -> None:
    assert list(bundle.shorter) == [4, 8]
    tokens = [int(n) for n in np.arange(16) % 26 + 2]
    expected, runner = Decoder.from_gguf(FILE).runner(16), bundle.runner()
    for token in tokens:
        wanted = expected.feed([token])
        assert np.abs(runner.feed([token]) - wanted).max() < 5e-3 * np.abs(wanted).max()
    assert runner.remaining == 0


def test_a_shorter_plan_reads_fewer_rows(bundle: LlmBundle) -> None:
    times = [bundle.time(rows).decode_cycles for rows in (4, 16)]
    assert times[0] < times[1] == bundle.time().decode_cycles
    with pytest.raises(InputError, match="there are plans for a context of 4, 8, 16, not of 5"):
        bundle.time(5)


def test_all_plans_are_saved_and_loaded(bundle: LlmBundle, tmp_path: Path) -> None:
    bundle.save(tmp_path)
    again = LlmBundle.load(tmp_path)
    assert list(again.shorter) == [4, 8]
    assert again.generate("hello", max_tokens=6) == bundle.generate("hello", max_tokens=6)
    assert len(list(tmp_path.glob("decode.*"))) == 3


@pytest.mark.parametrize(
    "shorter",
    [[], {"4": "../x"}, {"16": "decode.0123456789abcdef"}, {"x": "decode.0123456789abcdef"}, "own"],
)
def test_shorter_plans_that_cannot_be_are_refused(
    bundle: LlmBundle, tmp_path: Path, shorter: object
) -> None:
    bundle.save(tmp_path)
    path = tmp_path / "llm.json"
    said = json.loads(path.read_text())
    if shorter == "own":
        shorter = {"4": said["shorter"]["8"]}
    path.write_text(json.dumps({**said, "shorter": shorter}))
    with pytest.raises(InputError, match="LLM08"):
        LlmBundle.load(tmp_path)
