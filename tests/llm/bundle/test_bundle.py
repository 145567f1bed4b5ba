"""Bundles of language models: plans say what the model says, in chunks, saved and loaded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.compile.bundle.bundle import Bundle
from nacre.core.constants import constant_array
from nacre.llm.bundle.llm_bundle import LlmBundle, build
from nacre.llm.bundle.runs import cache_dtype
from nacre.llm.gguf.file import parse_gguf
from nacre.llm.gguf.writing import metadata_bytes
from nacre.llm.model.cache import cache_slices
from nacre.llm.model.config import Config
from nacre.llm.model.runner import Decoder
from nacre.llm.model.step import POSITION, TOKENS
from tests.llm.gguf_bytes import small_file
from tests.llm.letters import LETTER_KEYS, LETTERS
from tests.llm.reference import llama_bytes

pytestmark = pytest.mark.sampled(2)  # together they take long

FILE = parse_gguf(llama_bytes(LETTERS, pairs=LETTER_KEYS), "letters.gguf")
PROMPT = "hello there"


@pytest.fixture(scope="module")
def bundle() -> LlmBundle:
    return build(FILE, "npm4k", context=24, chunk=4)


def reference(tokens: list[int]) -> np.ndarray:
    runner = Decoder.from_gguf(FILE).runner(24)
    return np.stack([runner.feed([token]) for token in tokens])


@pytest.mark.heavy("two plans are compiled")
def test_plans_give_the_logits_of_the_model(bundle: LlmBundle) -> None:
    tokens = bundle.require_text().prompt_ids(PROMPT)
    expected = reference(tokens)
    runner = bundle.runner()
    found = runner.feed(tokens[:9])  # two chunks, and one that is not full
    assert np.abs(found - expected[8]).max() < 5e-3 * np.abs(expected).max()
    for place in (9, 10):
        found = runner.feed([tokens[place]])
        assert np.abs(found - expected[place]).max() < 5e-3 * np.abs(expected).max()


def test_a_cache_is_filled_to_its_last_row(bundle: LlmBundle) -> None:
    runner, tokens = bundle.runner(), [int(n) for n in np.arange(24) % 26 + 2]
    found = runner.feed(tokens)
    assert np.abs(found - reference(tokens)[-1]).max() < 0.02
    with pytest.raises(InputError, match="LLM07"):
        runner.feed([2])


def test_a_text_has_the_bits_of_runs_that_convert_the_cache(bundle: LlmBundle) -> None:
    session, runner = bundle.decode.session(), bundle.runner()
    types = bundle.decode.source.input_types
    caches = {n: np.zeros(t.shape, np.float32) for n, t in types.items() if n.startswith("cache")}
    for place, token in enumerate([5, 9, 2]):
        given = {TOKENS: np.array([token], np.int32), POSITION: np.array([place], np.int32)}
        logits, *rows = session.run({**given, **caches}).values()
        for (name, cache), row in zip(caches.items(), rows, strict=True):
            cache[cache_slices(name, place, place + 1)] = row
        np.testing.assert_array_equal(runner.feed([token]), logits[0])


def test_the_cache_is_in_the_type_of_the_plans(bundle: LlmBundle) -> None:
    assert cache_dtype(bundle.decode, bundle.config) == np.float16


def test_no_plan_moves_the_cache_whole(bundle: LlmBundle) -> None:
    for plan, size in ((bundle.decode, 1), (bundle.prefill, 4)):
        rows = [port for port in plan.manifest.outputs if port.name.startswith("rows")]
        assert {tuple(port.shape) for port in rows} == {(2, 8, size), (2, size, 8)}
        assert plan.problems == ()


def test_a_bundle_is_saved_and_loaded(bundle: LlmBundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "b")
    bundle.save(tmp_path / "b")  # in the place of the one that is there
    again = LlmBundle.load(tmp_path / "b")
    assert (again.context, again.chunk) == (24, 4)
    assert again.generate(PROMPT, max_tokens=6) == bundle.generate(PROMPT, max_tokens=6)
    assert again.time() == bundle.time()


def test_times_follow_from_both_plans(bundle: LlmBundle) -> None:
    time = bundle.time(24)
    assert time.decode_cycles == bundle.decode.time().cycles
    assert time.first_token_ms(9) == pytest.approx(3 * time.prefill_cycles / time.clock_mhz / 1000)
    assert time.tokens_per_second == pytest.approx(1e6 * time.clock_mhz / time.decode_cycles)
    with pytest.raises(InputError, match="LLM09"):
        bundle.time(48)


@pytest.mark.heavy("a plan is compiled")
def test_weights_of_four_bits_are_planned() -> None:
    made = build(FILE, "npm4k", "w4f16", context=16, chunk=1, group_size=32)
    expected = reference([5, 6])
    runner = made.runner()
    found = [runner.feed([token]) for token in (5, 6)]
    assert np.abs(np.stack(found) - expected).max() < 0.5 * np.abs(expected).max()
    assert made.decode.manifest.precision == "w4f16"


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"precision": "i8"}, "LLM09"),
        ({"context": 64}, "LLM06"),
        ({"context": 8, "chunk": 9}, "LLM06"),
    ],
)
def test_what_cannot_be_built_is_refused(how: dict[str, object], code: str) -> None:
    with pytest.raises(InputError, match=code):
        build(FILE, "npm4k", **how)  # type: ignore[arg-type]


def test_a_prompt_longer_than_the_context_is_refused(bundle: LlmBundle) -> None:
    with pytest.raises(InputError, match="LLM07"):
        bundle.generate("a" * 25)


@pytest.mark.parametrize("said", [b"", b"{", b"[]", b"\xff"])
def test_a_manifest_that_is_none_is_refused(bundle: LlmBundle, tmp_path: Path, said: bytes) -> None:
    bundle.save(tmp_path)
    (tmp_path / "llm.json").write_bytes(said)
    with pytest.raises(InputError, match="LLM08"):
        LlmBundle.load(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 1},
        {"context": "24"},
        {"chunk": None},
        {"context": 20},
        {"chunk": 5},
        {"context": True},
        {"head": "../model.gguf"},
        {"decode": "../decode.0123456789abcdef"},
        {"prefill": None},
    ],
)
def test_a_folder_whose_parts_do_not_fit_is_refused(
    bundle: LlmBundle, tmp_path: Path, changes: dict[str, object]
) -> None:
    bundle.save(tmp_path)
    path = tmp_path / "llm.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InputError, match="LLM08"):
        LlmBundle.load(tmp_path)


def test_only_what_the_manifest_names_stays(bundle: LlmBundle, tmp_path: Path) -> None:
    left = tmp_path / "decode.0123456789abcdef"  # of a write that was cut off
    bundle.save(tmp_path)
    left.mkdir()
    bundle.save(tmp_path)
    said = json.loads((tmp_path / "llm.json").read_text())
    named = {"llm.json", said["head"], said["decode"], said["prefill"]}
    (weights,) = tmp_path.glob("shared.*.safetensors")
    assert {path.name for path in tmp_path.iterdir()} == {*named, weights.name}


def test_weights_of_both_plans_are_stored_once_and_loaded_once(
    bundle: LlmBundle, tmp_path: Path
) -> None:
    bundle.save(tmp_path)
    (weights,) = tmp_path.glob("shared.*.safetensors")
    beside = sum(path.stat().st_size for path in tmp_path.rglob("*/*.safetensors"))
    assert isinstance(bundle.config, Config)
    count = bundle.config.width * (bundle.config.vocabulary + 4 * bundle.config.width)
    assert weights.stat().st_size > 2 * count  # in f16
    assert beside < weights.stat().st_size / 10
    again = LlmBundle.load(tmp_path)
    assert again.decode.weights == bundle.decode.weights
    assert again.prefill.weights == bundle.prefill.weights
    places = [
        {found.ctypes.data for op in plan.legal if (found := constant_array(op)) is not None}
        for plan in (again.decode, again.prefill)
    ]
    assert len(places[0] & places[1]) > 5


@pytest.mark.parametrize("change", ["cut", "flip", "remove"])
def test_shared_weights_that_are_damaged_are_refused(
    bundle: LlmBundle, tmp_path: Path, change: str
) -> None:
    bundle.save(tmp_path)
    (weights,) = tmp_path.glob("shared.*.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    if change == "remove":
        weights.unlink()
    else:
        weights.write_bytes(data[:-1] if change == "cut" else data)
    with pytest.raises(InputError, match="CMP07"):
        LlmBundle.load(tmp_path)


def test_a_plan_of_the_folder_is_a_bundle_by_itself(bundle: LlmBundle, tmp_path: Path) -> None:
    bundle.save(tmp_path)
    (path,) = tmp_path.glob("decode.*")
    assert Bundle.load(path).weights == bundle.decode.weights


def test_a_folder_with_other_files_is_left_alone(bundle: LlmBundle, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="LLM08"):
        bundle.save(tmp_path)
    with pytest.raises(InputError, match="LLM08"):
        LlmBundle.load(tmp_path)


def test_metadata_are_written_as_they_were_read() -> None:
    values = dict(parse_gguf(small_file()).metadata)
    values |= {"mixed": [-1, 1], "nested": [[1, 2], []], "none": [], "flags": [True, False]}
    assert dict(parse_gguf(metadata_bytes(values)).metadata) == values
