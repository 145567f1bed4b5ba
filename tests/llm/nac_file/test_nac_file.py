"""Language models as files of NAC: the tokens of plain NumPy, texts as their tokenizers say."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.llm.gguf.file import GgufFile, parse_gguf, read_gguf
from nacre.llm.nac_file.build import build_nac
from nacre.llm.nac_file.tokenizer import tokenizer_bundle
from nacre.llm.tokenizer.tokenizer import Tokenizer
from nacre.nac.mep.model_machine import machine_of
from nacre.nac.tisa import join, load
from tests.cli.runner import invoke
from tests.llm.checkpoint.folders import letter_tokenizer, llama_arrays, llama_config, write_folder
from tests.llm.gguf_bytes import BOOL, U32, Pair
from tests.llm.letters import LETTER_KEYS
from tests.llm.reference import Sizes, llama_bytes, random_weights, reference_logits

Capsys = pytest.CaptureFixture[str]
SIZES = Sizes(context=32)
FIXTURE = Path(os.environ.get("NACRE_LLM_FIXTURES", "fixtures-not-given")) / "stories260K.gguf"
BEGIN = [
    Pair("tokenizer.ggml.bos_token_id", U32, 1),
    Pair("tokenizer.ggml.add_bos_token", BOOL, 1),
]


def file_with(*pairs: Pair) -> GgufFile:
    return parse_gguf(llama_bytes(SIZES, pairs=[*LETTER_KEYS, *pairs]), "letters.gguf")


def greedy(ids: list[int], count: int) -> list[int]:
    weights = random_weights(SIZES)
    for _ in range(count):
        token = int(reference_logits(weights, SIZES, ids)[-1].argmax())
        if token == 0:
            break
        ids = [*ids, token]
    return ids


def spoken(model: nac.NacModel, text: str, tokens: int) -> list[int]:
    _, ids = machine_of(model).run({"text": text, "tokens": tokens})
    return [int(index) for index in np.asarray(ids)[0]]


def test_a_file_writes_the_tokens_of_the_model(tmp_path: Path) -> None:
    nac.save(build_nac(file_with(), context=20), tmp_path / "letters.nac")
    model = nac.load(tmp_path / "letters.nac")
    assert spoken(model, "hello", 9) == greedy([9, 6, 13, 13, 16], 9)
    assert spoken(model, "go", 5) == greedy([8, 16], 5)  # the cache of the text before is not seen


def test_a_text_goes_no_further_than_the_cache() -> None:
    model = build_nac(file_with(), context=8)
    # The last token needs no row of the cache.
    assert len(spoken(model, "hello", 100)) == len(greedy([9, 6, 13, 13, 16], 4))
    with pytest.raises(InputError, match="text of at most 8 tokens"):
        machine_of(model).run({"text": "hello there", "tokens": 1})


def test_weights_have_the_names_of_the_file() -> None:
    model = build_nac(file_with(), context=8)
    assert set(random_weights(SIZES)) <= set(model.weights.names.values())


@pytest.mark.parametrize("quant", ["fp16", "int8_channel"])
def test_weights_are_stored_in_fewer_bits_and_tables_are_not(quant: str) -> None:
    model = build_nac(file_with(), context=8, quant=quant)
    plain = build_nac(file_with(), context=8)
    for id_, name in plain.weights.names.items():
        stored, full = model.weights.tensor(id_), plain.weights.tensor(id_)
        is_matrix = name in random_weights(SIZES) and len(full.shape) == 2
        assert (len(stored.data) < len(full.data)) == is_matrix, name


@pytest.mark.parametrize("pairs", [[], BEGIN], ids=["plain", "begins"])
def test_texts_have_the_ids_of_templates(pairs: list[Pair]) -> None:
    tokenizer = Tokenizer.from_gguf(file_with(*pairs))
    bundle = tokenizer_bundle(tokenizer)
    program = load(join(bundle.manifest, bundle.resources))
    for text in ("hello", "a<s>b<e>", "<s>", "", " a  b", "<x"):
        expected = tokenizer.encode(text, parse_special=True)
        found = program.encode(text)
        # A text that writes the first token itself has it twice in a file of NAC.
        assert found in (expected, [*tokenizer.encode(""), *expected]), text


def test_a_folder_of_transformers_becomes_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_folder(folder, llama_config(SIZES), llama_arrays(SIZES), tokenizer=letter_tokenizer())
    assert spoken(build_nac(folder, context=16), "hello", 4) == greedy([9, 6, 13, 13, 16], 4)


def test_a_model_without_a_tokenizer_has_no_plan() -> None:
    model = build_nac(parse_gguf(llama_bytes(SIZES)), context=8)
    assert not model.file.plan.bytecode
    logits = model.session().run(
        {"tokens": np.array([[3]], np.int64), "position": np.array([0], np.int64)}
    )[0]
    expected = reference_logits(random_weights(SIZES), SIZES, [3])[-1]
    assert np.abs(logits[0, 0] - expected).max() < 1e-4


def test_the_verbs_build_and_run_it(tmp_path: Path, capsys: Capsys) -> None:
    path, made = tmp_path / "letters.gguf", tmp_path / "letters.nac"
    path.write_bytes(llama_bytes(SIZES, pairs=LETTER_KEYS))
    built = invoke(capsys, "nac", "build", path, "-o", made, "--context", "16")
    assert (built.status, built.out.split(":")[0]) == (0, f"wrote {made}")
    said = invoke(capsys, "nac", "run", made, "--answer", "text=hello", "--answer", "tokens=4")
    letters = "abcdefghijklmnopqrstuvwxyz "
    text = "".join(letters[i - 2] for i in greedy([9, 6, 13, 13, 16], 4) if i > 1)
    assert (said.status, said.out.splitlines()[1]) == (0, text)


@pytest.mark.parametrize(
    "more", [("--plan", "greedy"), ("--tokenizer", "."), ("--shape", "x=1"), ("--resource", "a")]
)
def test_what_a_language_model_brings_is_not_given(
    tmp_path: Path, capsys: Capsys, more: tuple[str, str]
) -> None:
    path = tmp_path / "letters.gguf"
    path.write_bytes(llama_bytes(SIZES))
    done = invoke(capsys, "nac", "build", path, "-o", tmp_path / "a.nac", *more)
    assert done.status == 2
    assert more[0] in done.err


def test_the_cache_is_asked_for_of_language_models_alone(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "a.core"
    path.write_text("")
    done = invoke(capsys, "nac", "build", path, "-o", tmp_path / "a.nac", "--context", "9")
    assert done.status == 2
    assert "--context is for language models" in done.err


@pytest.mark.skipif(not FIXTURE.is_file(), reason="NACRE_LLM_FIXTURES has no such file")
def test_a_trained_model_tells_its_story() -> None:
    text, _ = machine_of(build_nac(read_gguf(FIXTURE), context=64)).run(
        {"text": "Once upon a time", "tokens": 12}
    )
    assert str(text).startswith("Once upon a time, there was a little girl named")
