from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.cli import outputs
from nacre.nac.format.file import to_bytes
from nacre.nac.synthesis.derivation import Derivation, count, fits
from nacre.nac.synthesis.evaluation import Evaluator
from nacre.nac.synthesis.examples import EXAMPLES, digits, examples_of, figures
from nacre.nac.synthesis.families import families_corpus
from nacre.nac.synthesis.grammar import NETWORK, Grammar, Production
from nacre.nac.synthesis.page import About, search_page
from nacre.nac.synthesis.search import Score, random_search, search
from nacre.nac.synthesis.short_training import Course, train
from nacre.nac.synthesis.synthesise import derive_all, request_of
from nacre.nac.synthesis.variation import MUTATIONS, mutate, settle, transplant
from tests.cli.runner import invoke
from tests.effort import scaled

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]
SHAPE = (1, 1, 8, 8)


def families() -> Grammar:
    return families_corpus().grammar


REQUEST_LIMITS = (20_000, 300_000)


@cache
def drawn() -> tuple[Derivation, ...]:
    return tuple(derive_all(families(), request_of(families(), SHAPE, *REQUEST_LIMITS), 12, 3))


def by_size(one: Derivation) -> Score:
    """Wider networks err less and take longer; the best has many parameters and few products."""
    counts = count(one)
    return Score(1.0 / (1.0 + counts.parameters / 2000), 10 + counts.macs // 100)


# Children


@settings(max_examples=scaled(60))
@given(st.integers(0, 1 << 32), st.integers(0, 11), st.integers(0, 11))
def test_children_fit_and_meet_budgets(seed: int, first: int, second: int) -> None:
    random = np.random.default_rng(seed)
    request = request_of(families(), SHAPE, *REQUEST_LIMITS)
    host, donor = drawn()[first], drawn()[second]
    starts = {choice for choice, _ in families().choices[NETWORK]}
    children = [transplant(families(), random, host, donor), mutate(families(), random, host)]
    children += [change(families(), random, host) for change in MUTATIONS]
    for child in children:
        settled = settle(child, request)
        if settled is not None:
            assert fits(settled)
            assert request.limits.allow(settled)
            assert settled.stages[0].block in starts


def test_a_transplant_brings_stages_of_the_donor() -> None:
    random = np.random.default_rng(1)
    host, donor = drawn()[0], drawn()[1]
    made = [transplant(families(), random, host, donor) for _ in range(40)]
    brought = [
        one for one in made if one and any(s in donor.stages for s in one.stages)
        and all(s in (*host.stages, *donor.stages) for s in one.stages)
    ]  # fmt: skip
    assert len(brought) == len([one for one in made if one is not None]) > 0


# The search


@pytest.mark.full
def test_a_search_finds_more_than_drawing_does() -> None:
    request = request_of(families(), SHAPE, *REQUEST_LIMITS)
    gains = []
    for seed in range(3):
        found = search(families(), request, by_size, 60, seed)
        other = random_search(families(), request, by_size, 60, seed)
        assert len(found.found) == len(other.found) == 60
        reference = (1.0, 3000.0)
        gains.append(found.hypervolume(reference) / other.hypervolume(reference))
    assert sorted(gains)[1] > 1


def test_a_search_repeats_itself_and_says_what_is_on_its_front() -> None:
    request = request_of(families(), SHAPE, *REQUEST_LIMITS)
    counted: list[int] = []
    first = search(families(), request, by_size, 30, 5, watch=lambda now, of: counted.append(now))
    assert first == search(families(), request, by_size, 30, 5)
    assert counted == list(range(1, 31))
    assert len({one.derivation for one in first.found}) == 30
    points = [one.score.point for one in first.found]
    for one in first.front:
        assert not any(p[0] <= one.score.point[0] and p[1] < one.score.point[1] for p in points)
    volumes = [first.hypervolume((1.0, 3000.0), n) for n in range(31)]
    assert volumes == sorted(volumes)
    assert volumes[0] == 0


def test_networks_that_do_not_fit_the_device_count_as_evaluations() -> None:
    request = request_of(families(), SHAPE, *REQUEST_LIMITS)
    found = search(families(), request, lambda one: None, 12, 1)
    assert found.found == ()
    assert found.front == ()
    with pytest.raises(InputError, match="NAC57"):
        search(families(), request_of(families(), SHAPE, 1), by_size, 5)


@pytest.mark.full
def test_optuna_tunes_numbers() -> None:
    pytest.importorskip("optuna")
    from nacre.nac.synthesis.numbers import OptunaTuner

    request = request_of(families(), SHAPE, *REQUEST_LIMITS)
    found = search(families(), request, by_size, 60, 1, tuner=OptunaTuner(1))
    assert any(one.origin == "numbers" for one in found.found)
    assert all(request.limits.allow(one.derivation) for one in found.found)


# Data and training


def test_the_digits_are_all_there() -> None:
    data = digits()
    assert (len(data.train[1]), len(data.test[1])) == (1348, 449)
    assert data.shape == SHAPE
    assert data.classes == 10
    together = np.concatenate([data.train[0], data.test[0]])
    assert abs(float(together.mean())) < 1e-3
    assert float(together.std()) == pytest.approx(1, abs=1e-3)
    assert len(np.unique(together)) == 17


def test_figures_are_drawn_alike_each_time() -> None:
    data = figures()
    assert data.classes == 7
    assert sorted(EXAMPLES) == ["digits", "figures"]
    counts = np.bincount(np.concatenate([data.train[1], data.test[1]]))
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({}, "expected images and labels"),
        (
            {name: np.zeros((20, 8, 8)) for name in ("images", "inputs")}
            | {"labels": np.zeros(20, int)},
            "found `images` and `inputs`, expected one",
        ),
        ({"images": np.zeros((20, 8, 8))}, "expected images and labels"),
        ({"images": np.zeros((20, 8, 8)), "labels": np.zeros(19, int)}, "20 inputs and 19"),
        ({"images": np.zeros((4, 8, 8)), "labels": np.zeros(4, int)}, "16 or more"),
        ({"images": np.zeros((20, 8, 8)), "labels": np.zeros(20)}, "expected integers"),
        ({"images": np.zeros(20), "labels": np.zeros(20, int)}, "expected numbers"),
        ({"images": np.full((20, 2), np.nan), "labels": np.zeros(20, int)}, "not finite"),
        (
            {"images": np.zeros((20, 2)), "labels": np.full(20, -1)},
            "labels from -1",
        ),
    ],
)
def test_data_that_does_not_fit_is_refused(arrays: dict[str, np.ndarray], said: str) -> None:
    with pytest.raises(InputError) as caught:
        examples_of(arrays)
    assert {d.code for d in caught.value.diagnostics} == {"NAC59"}
    assert said in str(caught.value)


def test_short_training_makes_errors_fewer_and_repeats_itself() -> None:
    request = request_of(families(), SHAPE, 5_000, 50_000)
    (network,) = derive_all(families(), request, 1, 8)
    course = Course(steps=25, batch=32)
    trained = train(network, digits(), course)
    assert trained.accuracy > 0.25  # guessing has a tenth
    assert np.mean(trained.losses[-5:]) < np.mean(trained.losses[:5])
    again = train(network, digits(), course)
    assert again.losses == trained.losses
    assert again.accuracy == trained.accuracy


def test_a_trained_file_answers_as_it_was_measured() -> None:
    request = request_of(families(), SHAPE, 5_000, 50_000)
    (network,) = derive_all(families(), request, 1, 8)
    evaluator = Evaluator(digits(), lambda model: 1, Course(steps=10, batch=32))
    score = evaluator(network)
    assert score is evaluator(network)
    model = evaluator.trained_model(network)
    assert nac.verify(to_bytes(model.file)) == []
    inputs, labels = digits().test
    session = model.session()
    answers = [int(np.argmax(session.run({"x": one[None]})[0])) for one in inputs[:150]]
    share = float(np.mean(np.array(answers) == labels[:150]))
    assert score is not None
    assert abs(share - (1 - score.error)) < 0.15


# The page and the command


def test_the_page_has_every_network_and_the_front() -> None:
    request = request_of(families(), SHAPE, *REQUEST_LIMITS)
    result = search(families(), request, by_size, 20, 2)
    page = search_page(result, About("<digits>", "npm4k", 40, result.reference(10)))
    tree = ElementTree.fromstring(page.replace("<!doctype html>", "").replace("&nbsp;", " ")
        .replace('<meta charset="utf-8">', "").replace('initial-scale=1">', 'initial-scale=1"/>')
        .replace('content="nacre">', 'content="nacre"/>')
        .replace("form-action 'none'\">", "form-action 'none'\"/>"))  # fmt: skip
    titled = [c for c in tree.iter("circle") if c.find("title") is not None]
    assert len(titled) == len(result.found)
    assert sum("best" in c.get("class", "") for c in titled) == len(result.front)
    assert len(list(tree.iter("tr"))) == len(result.front) + 1
    assert "&lt;digits&gt;" in page
    assert "<script" not in page
    empty = search(families(), request, lambda one: None, 3, 2)
    assert "0 networks" in search_page(empty, About("x", "npm4k", 1, (0.9, 10.0)))


def _small_search() -> list[str]:
    """Arguments of a search that takes a moment; its files are written."""
    random = np.random.default_rng(0)
    labels = np.arange(40) % 2
    images = random.normal(size=(40, 6, 6)) + labels[:, None, None]
    np.savez("small.npz", images=images, labels=labels)
    rows = (Production("network", "ConvBlock", 1), Production("after ConvBlock", "ConvBlock", 1))
    Path("g.json").write_text(Grammar((), rows).to_json())
    budgets = ["--params", "600", "--macs", "6000", "--steps", "3"]
    return ["--like", "g.json", "--data", "small.npz", *budgets]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.chdir(tmp_path)
    given = _small_search()
    made = invoke(capsys, "nac", "search", *given, "--evaluations", "4", "--html", "p.html",
                  "-o", "out", "--format", "json")  # fmt: skip
    assert made.status == 0, made.text
    networks = json.loads(made.out)["networks"]
    assert len(networks) == 4
    best = [row for row in networks if row["front"]]
    assert sorted(p.name for p in Path("out").iterdir()) == [
        f"front-{at}.nac" for at in range(len(best))
    ]
    assert Path("p.html").read_text().startswith("<!doctype html>")
    text = invoke(capsys, "nac", "search", *given, "--evaluations", "2")
    assert "cycles on npm4k" in text.out


@pytest.mark.parametrize("place", ["an evaluation", "a network of the front", "the page"])
def test_an_interrupt_leaves_nothing_that_stands_in_the_way(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [*_small_search(), "--evaluations", "3", "--html", "p.html", "-o", "out"]
    before = sorted(Path().iterdir())
    owner, name = {
        "an evaluation": (Evaluator, "__call__"),
        "a network of the front": (Evaluator, "trained_model"),
        "the page": (outputs, "write_together"),
    }[place]

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, interrupt)
        stopped = invoke(capsys, "nac", "search", *given)
    assert (stopped.status, stopped.text) == (130, "stopped\n")
    assert sorted(Path().iterdir()) == before
    assert invoke(capsys, "nac", "search", *given).status == 0
    assert sorted(p.name for p in Path().iterdir()) == ["g.json", "out", "p.html", "small.npz"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ("--data missing.npz", 2, "missing.npz"),
        ("--data broken.npz", 1, "no .npz file"),
        ("--data empty.npz", 1, "NAC59"),
        ("--data both.npz", 1, "NAC59"),
        ("--params 3", 1, "NAC57"),
        ("--device nowhere", 1, "nowhere"),
        ("--evaluations 0", 2, "--evaluations"),
    ],
)
def test_searches_that_are_refused(
    arguments: str,
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.npz").write_text("no")
    np.savez("empty.npz", images=np.zeros((20, 8, 8)))
    zeros = np.zeros((20, 8, 8))
    np.savez("both.npz", images=zeros, inputs=zeros, labels=np.arange(20) % 2)
    outcome = invoke(capsys, "nac", "search", *arguments.split())
    assert outcome.status == status
    assert said in outcome.text
