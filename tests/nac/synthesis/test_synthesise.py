from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.nac.format.file import to_bytes
from nacre.nac.genome.corpus import corpus_program
from nacre.nac.program.lift import lift_literally
from nacre.nac.synthesis.budgets import Limits, shrink, smallest
from nacre.nac.synthesis.derivation import count, write_module
from nacre.nac.synthesis.families import families_corpus, family_networks
from nacre.nac.synthesis.grammar import Grammar, Production
from nacre.nac.synthesis.synthesise import derive_all, make_individual, request_of
from nacre.nac.tools.opening import open_nac
from tests.cli.runner import invoke
from tests.effort import scaled
from tests.nac.synthesis.counting import naive_macs, naive_parameters

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]
SHAPES = [(1, 1, 8, 8), (2, 3, 16, 12), (1, 3, 7, 9), (1, 4, 1, 1), (1, 6, 8), (1, 12)]


def families() -> Grammar:
    return families_corpus().grammar


@settings(max_examples=scaled(12))
@given(
    st.sampled_from(SHAPES),
    st.integers(0, 1 << 40),
    st.integers(500, 40_000),
    st.integers(5_000, 2_000_000),
)
def test_networks_meet_their_budgets_verify_run_and_learn(
    shape: tuple[int, ...], seed: int, params: int, macs: int
) -> None:
    request = request_of(families(), shape, params, macs, 5)
    least = smallest(families(), shape, 5, request.limits)
    if least is None or not request.limits.allow(least):
        with pytest.raises(InputError, match="NAC57"):
            derive_all(families(), request, 1, seed)
        return
    (derived,) = derive_all(families(), request, 1, seed)
    made = make_individual("x", derived, seed)
    module = lift_literally(made.model)
    assert naive_parameters(module) == made.parameters <= params
    assert naive_macs(module) == made.macs <= macs
    assert nac.verify(to_bytes(made.model.file)) == []
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    (scores,) = made.model.run({"x": x})
    assert scores.shape == (shape[0], 5)
    assert np.isfinite(scores).all()
    labels = np.arange(shape[0]) % 5
    assert goes_down(made.model, x, labels)


def goes_down(model: nac.NacModel, x: np.ndarray, labels: np.ndarray) -> bool:
    """Whether a few small steps make the loss smaller; each rate is tried from the start."""
    for rate in (0.01, 0.001, 0.0001):
        trainer = nac.Trainer(model)
        losses = [trainer.step({"x": x}, [labels], rate) for _ in range(4)]
        if losses[-1] < losses[0]:
            return True
    return False


def test_the_same_seed_gives_the_same_bytes() -> None:
    corpus = families_corpus()
    made = [nac.synthesise(corpus, (1, 1, 8, 8), params=5000, count=2, seed=s) for s in (3, 3, 4)]
    files = [[to_bytes(one.model.file) for one in some] for some in made]
    assert files[0] == files[1] != files[2]
    assert len({one.derivation for some in made[1:] for one in some}) > 2


def test_weights_do_not_depend_on_how_many_examples_are_given() -> None:
    network = family_networks((8,))["resnet-1.1.1-w8"]
    one, many = (write_module(network, 5, batch) for batch in (1, 4))
    assert many.input_types["x"].shape == (4, 3, 32, 32)
    pairs = zip(one.parameter_names.values(), many.parameter_names.values(), strict=True)
    assert all(a == b for a, b in pairs)
    x = np.random.default_rng(0).normal(size=(4, 3, 32, 32)).astype(np.float32)
    models = nac.build(one), nac.build(many)
    each = np.concatenate([models[0].run({"x": x[i : i + 1]})[0] for i in range(4)])
    np.testing.assert_allclose(each, models[1].run({"x": x})[0], rtol=1e-4, atol=1e-5)


def test_what_is_made_has_the_patterns_of_what_it_was_learned_from() -> None:
    for one in nac.synthesise(families_corpus(), (1, 3, 32, 32), params=60_000, count=2, seed=2):
        patterns = corpus_program("x", open_nac(to_bytes(one.model.file))).patterns
        named = {s.block for s in one.derivation.stages} & {"ConvBlock", "BasicBlock", "MBConv",
                 "InvertedResidual", "TransformerLayer", "Fire", "Bottleneck"}  # fmt: skip
        assert named <= set(patterns)


def test_distances_are_to_the_nearest_of_the_corpus() -> None:
    corpus = families_corpus()
    made = nac.synthesise(corpus, (1, 3, 32, 32), params=60_000, count=3, seed=1,
                          cycles=lambda model: len(model.file.instructions))  # fmt: skip
    names = [one.name for one in corpus.genomes]
    for one in made:
        assert one.nearest in names
        assert one.distance is not None
        assert 0 <= one.distance <= 1
        assert one.cycles == len(one.model.file.instructions)
    assert nac.synthesise(corpus.grammar, (1, 8))[0].distance is None


@pytest.mark.parametrize("params", [1, 40, 57])
def test_budgets_that_cannot_be_met_name_the_smallest(params: int) -> None:
    with pytest.raises(InputError, match="the smallest") as caught:
        nac.synthesise(families(), (1, 1, 8, 8), params=params)
    assert [d.code for d in caught.value.diagnostics] == ["NAC57"]
    least = smallest(families(), (1, 1, 8, 8), 10, Limits(params))
    assert least is not None
    assert f"{count(least).parameters:,} parameters" in str(caught.value)
    # What is said to be possible is.
    (made,) = nac.synthesise(families(), (1, 1, 8, 8), params=count(least).parameters)
    assert made.parameters == count(least).parameters


def test_a_grammar_of_other_joints_is_refused() -> None:
    vectors = Grammar((), (Production("network", "LinearBlock", 1),))
    with pytest.raises(InputError, match="can stand on an input of 1x3x8x8"):
        nac.synthesise(vectors, (1, 3, 8, 8))


def test_a_grammar_of_giants_is_held_to_a_size_that_can_be() -> None:
    rows = (
        Production("network", "ConvBlock", 1), Production("after ConvBlock", "ConvBlock", 1 << 40),
        Production("network.width", 65536, 1), Production("network.stages", 256, 1),
        Production("ConvBlock.repeat", 64, 1), Production("ConvBlock.kernel", 31, 1),
    )  # fmt: skip
    (made,) = derive_all(Grammar((), rows), request_of(Grammar((), rows), (1, 3, 64, 64)), 1, 0)
    assert count(made).parameters <= 50_000_000
    assert sum(stage.repeat for stage in made.stages) <= 128


def test_more_networks_than_there_are() -> None:
    grammar = Grammar(
        (), (Production("network", "LinearBlock", 1), Production("network.stages", 1, 1))
    )
    with pytest.raises(InputError, match="different networks") as caught:
        nac.synthesise(grammar, (1, 4), params=100, count=50)
    assert [d.code for d in caught.value.diagnostics] == ["NAC57"]


@settings(max_examples=scaled(30))
@given(
    st.sampled_from(sorted(family_networks())), st.integers(300, 30_000), st.integers(2_000, 10**6)
)
def test_large_networks_are_made_to_fit(name: str, params: int, macs: int) -> None:
    limits = Limits(params, macs)
    made = shrink(family_networks()[name], limits)
    if made is not None:
        assert count(made).parameters <= params
        assert count(made).macs <= macs
        assert made.stages[0].block == family_networks()[name].stages[0].block


@pytest.mark.parametrize(
    "given", [{"params": 0}, {"macs": -1}, {"classes": 0}, {"count": 0}, {"input": (1, 2, 3, 4, 5)},
              {"input": (1, 0)}, {"input": (1, 1 << 30)}]
)  # fmt: skip
def test_requests_without_meaning(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"expected|elements"):
        nac.synthesise(families(), **{"input": (1, 4), **given})  # type: ignore[arg-type]


# The command line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("resnet-1.1.1-w8", "mobilenet2-1.2.2-w8"):
        nac.save(nac.build(write_module(family_networks((8,))[name], 0)), tmp_path / f"{name}.nac")
    return tmp_path


def test_the_commands(folder: Path, capsys: Capsys) -> None:
    shown = invoke(capsys, "nac", "grammar", ".", "-o", "g.json")
    assert shown.status == 0
    assert "after BasicBlock" in shown.out
    same = invoke(capsys, "nac", "grammar", "g.json", "--format", "json")
    assert json.loads(same.out) == json.loads((folder / "g.json").read_text())
    given = ("--params", "4000", "--macs", "200000", "--count", "2", "--seed", "5",
             "--input", "1x1x8x8")  # fmt: skip
    made = invoke(capsys, "nac", "synthesise", "--like", ".", *given, "-o", "out",
                  "--device", "npm4k", "--format", "json")  # fmt: skip
    assert made.status == 0
    rows = json.loads(made.out)
    assert [row["name"] for row in rows] == ["synth-5-0", "synth-5-1"]
    for row in rows:
        assert row["parameters"] <= 4000
        assert row["cycles"] > 0
        assert row["nearest"] in ("resnet-1.1.1-w8", "mobilenet2-1.2.2-w8")
        assert nac.verify(folder / "out" / f"{row['name']}.nac") == []
    text = invoke(capsys, "nac", "synthesise", "--like", "g.json", *given)
    assert text.status == 0
    assert "synth-5-1" in text.out
    assert "nearest" not in text.out  # a grammar has no networks to compare with


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ("synthesise --like . --input 1x1x8x8 --params 10", 1, "NAC57"),
        ("synthesise --like . --input 1x1x8", 1, "NAC57"),
        ("synthesise --like . --input axb", 2, "is no shape"),
        ("synthesise --like . --input 1x2x3x4x5", 2, "NxCxHxW"),
        ("synthesise --like . --input 1x1x8x8 --device nowhere", 1, "nowhere"),
        ("synthesise --like missing.nac --input 1x1x8x8 --device nowhere", 1, "nowhere"),
        ("synthesise --like missing.nac --input 1x1x8x8", 2, "missing.nac"),
        ("synthesise --like . --input 9x9999x9999x9999", 2, "elements"),
        ("grammar broken.json", 1, "NAC58"),
        ("grammar broken.json resnet-1.1.1-w8.nac", 2, "one grammar"),
        ("grammar . -o resnet-1.1.1-w8.nac", 2, "written over"),
    ],
)
def test_what_is_refused(
    arguments: str, status: int, said: str, folder: Path, capsys: Capsys
) -> None:
    (folder / "broken.json").write_text("{}")
    outcome = invoke(capsys, "nac", *arguments.split())
    assert outcome.status == status
    assert said in outcome.out + outcome.err
