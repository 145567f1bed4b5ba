"""The plans that come with the package, on small models: made by hand, and real ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import core, nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.nac.format.file import to_bytes
from nacre.nac.mep import Machine, assemble, disassemble, plan_names, shipped_plan
from nacre.nac.mep.images import write_png
from nacre.nac.mep.plans import plan_text
from nacre.nac.mep.program import read
from nacre.nac.mep.work import Model
from tests.nac.mep.running import Alphabet, Successor

pytestmark = pytest.mark.sampled(2)  # together they take long

PLANS = (
    *("cached", "classify", "classify_text", "fill_mask", "greedy", "image_to_text", "seq2seq"),
    *("speculative", "top_k", "train"),
)
TEXT: dict[str, Any] = {"text": "abc", "tokens": 5, "window": 0, "end": -1}


def test_the_plans() -> None:
    assert plan_names() == PLANS
    for name in plan_names():
        raw = shipped_plan(name)
        assert assemble(disassemble(raw)) == raw
        machine = Machine(raw)
        asked = [line for line in plan_text(name).splitlines() if line.startswith(";   ")]
        words = {line.split()[1] for line in asked if line[4] != " "}
        again = set(re.findall(r"^; Asks for a `(.*)` where", plan_text(name), re.M))
        assert words | again == {prompt.text for prompt in machine.prompts}
    with pytest.raises(KeyError, match=f"there is no plan 'beam', only {', '.join(PLANS)}"):
        plan_text("beam")


@pytest.mark.parametrize(
    ("given", "text", "lengths"),
    [
        ({}, "abcdefgh", [3, 4, 5, 6, 7]),
        ({"tokens": 0}, "abc", []),
        ({"end": 5}, "abcde", [3, 4, 5]),
        ({"window": 16}, "abcdefgh", [16] * 5),
        ({"window": 5}, "abcdef", [5] * 3),
        ({"window": 2}, "abc", []),
    ],
)
def test_greedy_generation(given: dict[str, Any], text: str, lengths: list[int]) -> None:
    model = Successor()
    machine = Machine(shipped_plan("greedy"), models={"model": model}, tokenizer=Alphabet())
    whole, ids = machine.run({**TEXT, **given})
    assert whole == text
    assert isinstance(ids, np.ndarray)
    assert ids.tolist() == [[ord(c) - ord("a") for c in text]]
    assert model.lengths == lengths


def by_hand(model: Any, start: str, tokens: int, seed: int, temperature: float, k: int) -> str:  # noqa: ANN401
    """Top-k sampling in plain Python, with the same stream of chance."""
    chance = np.random.Generator(np.random.PCG64(seed))
    ids = Alphabet().encode(start)
    for _ in range(tokens):
        row = [float(v) for v in model.run({"ids": np.array([ids])})[0][0, -1]]
        least = sorted(row, reverse=True)[k - 1]
        weights = [np.exp((v - max(row)) / temperature) if v >= least else 0.0 for v in row]
        drawn, index = chance.random() * sum(weights), 0
        while drawn >= weights[index]:
            drawn -= weights[index]
            index += 1
        ids.append(index)
    return Alphabet().decode(ids)


def language_model() -> nac.NacModel:
    """A real one: an embedding and a product, in Core IR, through a file."""
    rng = np.random.default_rng(5)
    builder = Builder()
    ids = builder.input("ids", "i64", (1, 8))
    rows = builder.add("Gather", builder.constant(rng.normal(size=(26, 6)).astype(np.float32)), ids)
    head = builder.constant(rng.normal(size=(6, 26)).astype(np.float32))
    module = builder.module(builder.add("MatMul", rows, head))
    return nac.load(to_bytes(nac.lower(module, plan=read(shipped_plan("greedy")))))


class Padded:
    """The model with shorter inputs filled up."""

    def __init__(self, model: nac.NacModel) -> None:
        self.model = model

    def run(self, inputs: Any) -> list[Any]:  # noqa: ANN401
        ids = inputs["ids"]
        full = np.concatenate([ids, np.zeros((1, 8 - ids.shape[1]), np.int64)], 1)
        return [self.model.run({"ids": full})[0][:, : ids.shape[1]]]


@pytest.mark.parametrize(("temperature", "k"), [(1.0, 3), (2.0, 26), (5.0, 1)])
def test_sampling_from_the_best(temperature: float, k: int) -> None:
    model = language_model()
    texts = []
    for seed in (1, 2):
        machine = Machine(
            shipped_plan("top_k"), models={"model": model}, tokenizer=Alphabet(), seed=seed
        )
        given = {**TEXT, "window": 8, "temperature": temperature, "k": k}
        text, _ = machine.run(given)
        assert machine.run(given)[0] == text
        assert text == by_hand(Padded(model), "abc", 5, seed, temperature, k)
        texts.append(text)
    assert (texts[0] == texts[1]) == (k == 1)


def test_a_file_runs_the_plan_that_it_carries() -> None:
    model = language_model()
    machine = Machine(model.file.plan, models={"model": model}, tokenizer=Alphabet())
    text, ids = machine.run({**TEXT, "window": 8})
    assert isinstance(ids, np.ndarray)
    logits = Padded(model).run({"ids": ids[:, :-1]})[0]
    assert ids[0, 3:].tolist() == logits[0, 2:].argmax(-1).tolist()
    assert text == Alphabet().decode(ids[0].tolist())


def classifier() -> tuple[Any, nac.NacModel]:
    """The mean of each colour, and a product."""
    builder = Builder()
    image = builder.input("image", "f32", (1, 3, 224, 224))
    means = builder.add("Mean", image, axes=(2, 3), keepdims=False)
    weights = np.array([[1, 0, 0, -1], [0, 1, 0, -1], [0, 0, 1, -1]], np.float32)
    module = builder.module(builder.add("MatMul", means, builder.constant(weights)))
    return module, nac.load(to_bytes(nac.lower(module)))


def test_an_image_is_classified_from_a_file_and_from_pixels(tmp_path: Path) -> None:
    pixels = np.zeros((240, 320, 3), np.uint8)
    pixels[..., 0], pixels[..., 1], pixels[..., 2] = 40, 200, 160
    (tmp_path / "a.png").write_bytes(write_png(pixels))
    np.save(tmp_path / "labels.npy", np.array(["red", "green", "blue", "dark"]))
    module, model = classifier()
    machine = Machine(shipped_plan("classify"), models={"model": model}, root=tmp_path)
    text, classes, shares = machine.run({"image": "a.png", "labels": "labels.npy", "n": 2})
    ready = (np.array([40, 200, 160]) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    scores = np.array([*ready, -ready.sum()])
    wanted = np.exp(scores) / np.exp(scores).sum()
    assert isinstance(classes, np.ndarray)
    assert isinstance(shares, np.ndarray)
    assert classes.tolist() == np.argsort(-wanted)[:2].tolist() == [1, 2]
    np.testing.assert_allclose(shares, wanted[[1, 2]], rtol=1e-4)
    assert text == f"green: {wanted[1]:.2%}\nblue: {wanted[2]:.2%}\n"

    labels = ["red", "green", "blue", "dark"]
    again = machine.run({"image": pixels, "labels": labels, "n": 2})
    assert again[0] == text
    floats = np.broadcast_to(ready.astype(np.float32).reshape(1, 3, 1, 1), (1, 3, 224, 224))
    third = machine.run({"image": np.array(floats), "labels": labels, "n": 2})
    assert third[0] == text
    (direct,) = core.evaluate(module, {"image": np.array(floats)})
    np.testing.assert_allclose(direct[0], scores, rtol=1e-4)


class Rows:
    """A model of language by a table: scores of the next token for each token, or worse ones."""

    inputs: tuple[str, ...] = ("ids",)

    def __init__(self, seed: int, mistakes: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.scores = rng.normal(size=(26, 26)).astype(np.float32)
        self.mistakes = rng.random(26) < mistakes
        self.runs = 0

    def run(self, inputs: Any) -> list[Any]:  # noqa: ANN401
        self.runs += 1
        ids = inputs["ids"]
        scores = self.scores[ids]
        return [np.where(self.mistakes[ids][..., None], -scores, scores)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mistakes", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    "given",
    [{}, {"tokens": 0}, {"tokens": 1}, {"tokens": 17}, {"window": 9}, {"window": 2}, {"end": 3}],
)
@pytest.mark.parametrize("ahead", [0, 1, 4])
def test_two_models_write_what_the_large_one_would(
    mistakes: float, given: dict[str, Any], ahead: int
) -> None:
    for seed in range(4):
        asked = {**TEXT, "tokens": 12, **given}
        alone = Machine(shipped_plan("greedy"), models={"model": Rows(seed)}, tokenizer=Alphabet())
        expected: Any = alone.run(asked)
        large = Rows(seed)
        models = {"model": large, "draft": Rows(seed, mistakes)}
        machine = Machine(shipped_plan("speculative"), models=models, tokenizer=Alphabet())
        text, ids, runs = machine.run({**asked, "ahead": ahead})
        assert text == expected[0]
        assert isinstance(ids, np.ndarray)
        assert ids.tolist() == expected[1].tolist()
        assert runs == large.runs
        if not mistakes and not given and ahead == 4:
            assert runs == 3  # five tokens a run


def test_a_gap_is_filled() -> None:
    model = Rows(3)
    machine = Machine(shipped_plan("fill_mask"), models={"model": model}, tokenizer=Alphabet())
    text, tokens, shares = machine.run({"text": "abzcd", "mask": 25, "n": 3})
    row = model.scores[25].astype(np.float64)
    wanted = np.exp(row) / np.exp(row).sum()
    best = np.argsort(-wanted)[:3]
    assert isinstance(tokens, np.ndarray)
    assert tokens.tolist() == best.tolist()
    assert isinstance(shares, np.ndarray)
    np.testing.assert_allclose(shares, wanted[best], rtol=1e-5)
    lines = [f"{chr(ord('a') + token)}: {wanted[token]:.2%}" for token in best]
    assert text == "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "mask"), [("abcd", 25), ("abzcz", 25), ("zz", 25), ("abzcd", 99), ("", 25), ("", 0)]
)
def test_a_text_without_a_gap_or_with_several_is_asked_for_again(text: str, mask: int) -> None:
    models = {"model": Rows(3)}
    machine = Machine(shipped_plan("fill_mask"), models=models, tokenizer=Alphabet())
    with pytest.raises(InputError) as caught:
        machine.run({"text": text, "mask": mask, "n": 3})
    (found,) = caught.value.diagnostics
    assert found.code == "NAC96"
    assert found.message.endswith("`src_user_prompt`: there is no answer to `text with one mask`")
    assert not models["model"].runs
    if mask == 25:
        again = {"text": text, "mask": mask, "n": 3, "text with one mask": "z"}
        assert machine.run(again)[0] == machine.run({"text": "z", "mask": mask, "n": 3})[0]


@pytest.mark.parametrize("window", [0, 8])
@pytest.mark.parametrize("name", ["cached", "greedy", "speculative", "top_k"])
def test_an_empty_text_has_nothing_to_go_on_from(name: str, window: int) -> None:
    models: dict[str, Model] = {"model": Rows(1), "draft": Rows(1)}
    machine = Machine(shipped_plan(name), models=models, tokenizer=Alphabet())
    known = {"tokens": 5, "window": window, "end": -1, "ahead": 2, "temperature": 1.0, "k": 0}
    asked = {prompt.text for prompt in machine.prompts}
    given = {"text": "", **{k: v for k, v in known.items() if k in asked}}
    with pytest.raises(InputError) as caught:
        machine.run(given)
    (found,) = caught.value.diagnostics
    assert found.code == "NAC96"
    assert found.message.endswith(
        "`src_user_prompt`: there is no answer to `text that is not empty`"
    )
    if name != "cached":
        again = machine.run({**given, "text that is not empty": "abc"})
        assert again[0] == machine.run({**given, "text": "abc"})[0]


class Moods:
    inputs = ("ids",)

    def run(self, inputs: Any) -> list[Any]:  # noqa: ANN401
        ids = inputs["ids"]
        return [np.array([[(ids == 0).sum(), (ids == 1).sum(), 0]], np.float32)]


def test_a_text_is_classified() -> None:
    machine = Machine(
        shipped_plan("classify_text"), models={"model": Moods()}, tokenizer=Alphabet()
    )
    text, classes, shares = machine.run(
        {"text": "abbab", "labels": ["a lot of a", "a lot of b", "neither"], "n": 2}
    )
    wanted = np.exp([2, 3, 0]) / np.exp([2, 3, 0]).sum()
    assert isinstance(classes, np.ndarray)
    assert classes.tolist() == [1, 0]
    assert isinstance(shares, np.ndarray)
    np.testing.assert_allclose(shares, wanted[[1, 0]], rtol=1e-5)
    assert text == f"a lot of b: {wanted[1]:.2%}\na lot of a: {wanted[0]:.2%}\n"


class Sums:
    """An encoder: one number for all that it sees."""

    def __init__(self, name: str) -> None:
        self.inputs = (name,)

    def run(self, inputs: Any) -> list[Any]:  # noqa: ANN401
        return [np.array([[float(np.sum(inputs[self.inputs[0]]))]], np.float32)]


class Counting:
    """A decoder that counts on from what the encoder gave, whatever stands behind a token."""

    inputs = ("ids", "seen")

    def run(self, inputs: Any) -> list[Any]:  # noqa: ANN401
        ids, seen = inputs["ids"], int(inputs["seen"][0, 0])
        places = (ids + 1 + seen) % 26
        return [np.eye(26, dtype=np.float32)[places]]


@pytest.mark.parametrize("window", [0, 16])
def test_sequence_to_sequence(window: int) -> None:
    models: dict[str, Model] = {"model": Counting(), "encoder": Sums("asked")}
    machine = Machine(shipped_plan("seq2seq"), models=models, tokenizer=Alphabet())
    given = {"text": "ab", "tokens": 5, "window": window, "start": 2, "end": 8}
    answer, ids = machine.run(given)
    assert answer == "ceg"  # steps of 1 + the sum of the ids, up to the end
    assert isinstance(ids, np.ndarray)
    assert ids.tolist() == [[2, 4, 6]]


def test_a_picture_in_words() -> None:
    models: dict[str, Model] = {"model": Counting(), "encoder": Sums("picture")}
    machine = Machine(shipped_plan("image_to_text"), models=models, tokenizer=Alphabet())
    picture = np.zeros((1, 3, 224, 224), np.float32)
    picture[0, 0, 0, 0] = 2
    answer, _ = machine.run({"image": picture, "tokens": 3, "window": 0, "start": 0, "end": -1})
    assert answer == "adgj"
