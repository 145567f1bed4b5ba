from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.nac.format.file import to_bytes
from nacre.nac.synthesis.blocks import BLOCKS, Settings
from nacre.nac.synthesis.derivation import Derivation, Stage, write_module
from nacre.nac.synthesis.families import families_corpus, family_networks
from nacre.nac.synthesis.grammar import Grammar, learn, read_grammar
from nacre.nac.synthesis.learning import corpus_of, read_specimen
from nacre.nac.synthesis.reading import read_chain
from nacre.nac.synthesis.sampling import rebuild
from tests.nac.files import FOLDER

IMAGE = (1, 3, 32, 32)

ROWS = (
    Stage("ConvBlock", 16, 2, Settings(norm="batch", act="silu", stride=2)),
    Stage("Pool", 1, 1, Settings(kernel=3, stride=2, pool="mean")),
    Stage("BasicBlock", 32, 3, Settings(norm="batch", stride=2)),
    Stage("InvertedResidual", 16, 2, Settings(norm="batch", ratio=4.0, act="relu6")),
    Stage("MBConv", 32, 2, Settings(norm="batch", ratio=6.0, squeeze=0.5, act="silu", stride=2)),
    Stage("Bottleneck", 64, 2, Settings(ratio=0.25, stride=2, norm="batch")),
    Stage("Fire", 32, 2, Settings(ratio=0.25)),
    Stage("DepthwiseSeparable", 32, 2, Settings(norm="batch", kernel=5)),
    Stage("DepthwiseConv", 1, 2, Settings(norm="batch", kernel=5, act="silu")),
    Stage("DenseLayer", 8, 3, Settings(norm="batch", act="hardswish")),
    Stage("ConvNeXtBlock", 1, 2, Settings(kernel=7, norm="layer", ratio=4.0, act="gelu")),
    Stage("Norm", 1, 1, Settings(norm="layer")),
    Stage("Conv", 32, 1, Settings(kernel=2, stride=2)),
)


def chain_of(derivation: Derivation) -> tuple[Stage, ...]:
    """The stages that are read from a network's file."""
    chain = read_chain(read_specimen("x", nac.build(write_module(derivation, 1))))
    assert chain.is_closed
    assert chain.classes == derivation.classes
    stages = [link.stage for link in chain.links]
    assert None not in stages
    return tuple(stage for stage in stages if stage is not None)


def plain(stage: Stage) -> Stage:
    """A stage without a width that its block does not set."""
    width = stage.width if stage.kind.sets_width else 1
    return Stage(stage.block, width, stage.repeat, stage.kind.relevant(stage.settings))


@pytest.mark.parametrize("stage", ROWS, ids=[stage.block for stage in ROWS])
def test_what_is_written_is_read_again(stage: Stage) -> None:
    first = Stage("ConvBlock", 16, 1, Settings(act="tanh"))
    made = rebuild(Derivation(IMAGE, 7, (first, stage)))
    assert made is not None
    assert made.stages[1] == plain(stage)
    assert tuple(map(plain, chain_of(made))) == tuple(map(plain, made.stages))


@pytest.mark.parametrize(
    "layer",
    [
        Settings(heads=4, ratio=4.0, act="gelu", norm="layer"),
        Settings(heads=2, ratio=3.0, act="silu", norm="rms", is_gated=True),
    ],
)
def test_sequences_are_read_again(layer: Settings) -> None:
    stages = (
        Stage("PatchEmbed", 16, 1, Settings(kernel=4)), Stage("Tokens", 1), Stage("Position", 1),
        Stage("TransformerLayer", 1, 2, layer), Stage("Norm", 1, 1, Settings(norm="layer")),
    )  # fmt: skip
    assert tuple(map(plain, chain_of(Derivation(IMAGE, 10, stages)))) == stages


def test_a_vector_behind_an_image_is_read_again() -> None:
    stages = (Stage("ConvBlock", 8), Stage("Flatten", 1), Stage("LinearBlock", 64, 2))
    assert tuple(map(plain, chain_of(Derivation((1, 1, 8, 8), 10, stages)))) == stages


@cache
def small_grammar() -> Grammar:
    names = ("resnet-1.1.1-w8", "vit-2-w8", "squeezenet-2-w8")
    networks = family_networks((8,))
    return learn(read_specimen(name, nac.build(write_module(networks[name], 1))) for name in names)


def test_productions_count_what_stands_in_files() -> None:
    grammar = small_grammar()
    assert dict(grammar.choices["network"]) == {"ConvBlock": 2, "PatchEmbed": 1}
    assert dict(grammar.choices["after Pool"]) == {"BasicBlock": 1, "Fire": 1}
    assert dict(grammar.choices["after BasicBlock"]) == {"BasicBlock": 2, "Classifier": 1}
    assert dict(grammar.choices["BasicBlock.growth"]) == {1.0: 1, 2.0: 2}
    assert dict(grammar.choices["TransformerLayer.repeat"]) == {2: 1}
    assert dict(grammar.choices["network.classes"]) == {10: 3}
    assert grammar.networks == ("resnet-1.1.1-w8", "vit-2-w8", "squeezenet-2-w8")


def test_a_grammar_is_the_same_as_json() -> None:
    grammar = small_grammar()
    assert read_grammar(grammar.to_json()) == grammar
    assert json.loads(grammar.to_json())["format"] == "nacre.grammar.1"


def test_families_teach_every_block_they_have() -> None:
    known = set(families_corpus().grammar.blocks)
    assert known == set(BLOCKS) - {"SqueezeExcite", "DepthwiseConv"}  # they stand inside of MBConv
    assert len(family_networks()) >= 100


def test_a_file_of_the_reference_compiler_does_not_say_its_types() -> None:
    with pytest.raises(InputError) as caught:
        corpus_of([FOLDER / "cnn.none.v16.shim.nac"])
    assert {d.code for d in caught.value.diagnostics} == {"NAC46"}


def test_a_network_without_known_blocks_teaches_nothing() -> None:
    from nacre.core.builder import Builder

    made = Builder()
    x = made.input("x", "f32", (1, 4))
    model = nac.build(made.module(made.add("Softmax", x, axis=1)))
    with pytest.raises(InputError) as caught:
        corpus_of([model])
    assert [d.code for d in caught.value.diagnostics] == ["NAC56"]


def production(place: str, choice: object, count: int = 1) -> str:
    rows: dict[str, list[object]] = {"network": [{"choice": "ConvBlock", "count": 1}]}
    rows.setdefault(place, []).append({"choice": choice, "count": count})
    return json.dumps({"format": "nacre.grammar.1", "networks": [], "productions": rows})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a grammar"),
        ("[]", "expected a grammar"),
        ("[" * 100_000, "expected a grammar"),
        ('{"format": "x", "networks": [], "productions": {}}', "no production of `network`"),
        (production("ConvBlock.kernel", 99), "from 1 to 31"),
        (production("ConvBlock.kernel", 3.0), "from 1 to 31"),
        (production("ConvBlock.kernel", True), "from 1 to 31"),
        (production("ConvBlock.heads", 2), "no such place"),
        (production("ConvBlock.act", "sine"), "expected one of gelu"),
        (production("after Nothing", "ConvBlock"), "no such block"),
        (production("after ConvBlock", "Nothing"), "no block 'Nothing'"),
        (production("TransformerLayer.is_gated", 1), "true or false"),
        (production("network.width", 0), "from 1 to"),
        (production("nothing", 1), "no such place"),
        (production("ConvBlock.ratio", float("nan")), "expected a grammar"),
        (production("ConvBlock.kernel", 3, 0), "positive integer"),
    ],
)
def test_what_is_no_grammar_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_grammar(text)
    assert {d.code for d in caught.value.diagnostics} == {"NAC58"}
    assert said in str(caught.value)


@settings(max_examples=30)
@given(st.data())
def test_hostile_grammars_end_in_an_answer(data: st.DataObject) -> None:
    text = small_grammar().to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    broken = text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 5)) :]
    codes = set()
    try:
        grammar = read_grammar(broken)
    except InputError as error:
        codes = {d.code for d in error.diagnostics}
    else:
        assert read_grammar(grammar.to_json()) == grammar
    assert codes <= {"NAC58"}


def test_files_and_models_teach_the_same(tmp_path: object) -> None:
    network = family_networks((8,))["squeezenet-2-w8"]
    model = nac.build(write_module(network, 1))
    assert corpus_of([model], ["a"]) == corpus_of([nac.load(to_bytes(model.file))], ["a"])
