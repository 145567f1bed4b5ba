"""Tasks against type families: which variant they are, how they differ, which is nearest."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.base.source import Source, read_source
from nacre.nem.model.devices import Device, default_device
from nacre.nem.model.families import Instance
from nacre.nem.model.files import default_roots, load
from nacre.nem.model.linking import link
from nacre.nem.model.matching import (
    Matcher,
    OperandUse,
    Signature,
    TypeMatches,
    describe_differences,
    join_names,
    match_variants,
    nearest,
    quantised_operands,
    signature_of,
)
from nacre.nem.model.program import Task
from nacre.nem.model.resolver import resolve
from nacre.nem.model.target import builtin_device, directive_target
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.syntax.parser import parse

LITE, REFERENCE = builtin_device("npm_lite"), builtin_device("nem_reference")
QUANT = ", quant=per_tensor(scale=0.5, zero_point=0)"


def task_of(line: str, **elems: str) -> Task:
    """A task over regions of these element types; a `q` behind a type adds a descriptor."""
    text = "buffer M : L1 (size=4096)\n"
    for name, elem in elems.items():
        quant = QUANT if elem.endswith("q") else ""
        text += f"let {name} = region(M, 0, 64) elem={elem.rstrip('q')}, shape=[4, 4], "
        text += f"layout=MN{quant}\n"
    source = Source("test.nem", f"{text}t = {line}\n")
    resolved = resolve(source, parse(source).document)
    assert resolved.diagnostics == ()
    return next(iter(resolved.program.tasks))


def typing_of(device: Device, line: str, **elems: str) -> TypeMatches:
    typing = Matcher(device).match(task_of(line, **elems))
    assert typing is not None
    return typing


GEMM = "gemm.async in A, B out Y accum_type=f32"
BIASED = "gemm.async in A, B, C out Y accum_type={}"


@pytest.mark.parametrize(
    ("device", "line", "elems", "variant"),
    [
        (LITE, GEMM, {"A": "f16", "B": "f16", "Y": "f16"}, "gemm.float<f16>.no_bias"),
        (LITE, GEMM.replace("gemm", "matmul"), {"A": "f16", "B": "f16", "Y": "f16"},
         "gemm.float<f16>.no_bias"),
        (LITE, BIASED.format("i32"), {"A": "i8q", "B": "i8q", "C": "i32", "Y": "i8"},
         "gemm.int8<i8>.with_bias"),
        (REFERENCE, BIASED.format("i32"), {"A": "i8", "B": "i4q", "C": "i32", "Y": "i8"},
         "gemm.int4.with_bias"),
        (LITE, "add.async in A, B out Y", {"A": "i8", "B": "i8", "Y": "i8"}, "eltwise<i8>.default"),
        (LITE, "concat.async in A, B, A out Y axis=0", {"A": "f16", "B": "f16", "Y": "f16"},
         "view<f16>.default"),
        (LITE, "gather.async in A, B out Y axis=0", {"A": "f16", "B": "u32", "Y": "f16"},
         "view<f16>.default"),
        (LITE, "rmsnorm.async in A out Y axis=0 epsilon=1.0", {"A": "f16", "Y": "f16"},
         "norm<f16>.default"),
        (LITE, "layernorm.async in A, B, C out Y axis=0 epsilon=1.0",
         {"A": "f16", "B": "f16", "C": "f16", "Y": "f16"}, "norm<f16>.default"),
        (LITE, "cast.async in A out Y", {"A": "u32", "Y": "bf16"}, "cast.default"),
        (LITE, "quantize.async in A out Y", {"A": "f16", "Y": "i8q"}, "quantize<f16, i8>.default"),
        (LITE, "dequantize.async in A out Y", {"A": "i8q", "Y": "f16"},
         "dequantize<i8, f16>.default"),
    ],
)  # fmt: skip
def test_a_task_matches_its_variant(
    device: Device, line: str, elems: dict[str, str], variant: str
) -> None:
    typing = typing_of(device, line, **elems)

    assert typing.is_legal
    assert typing.instance is not None
    assert typing.instance.id == variant


@pytest.mark.parametrize(
    ("line", "elems", "variant", "differences"),
    [
        (GEMM, {"A": "f16", "B": "f32", "Y": "f16"}, "gemm.float<f16>.no_bias",
         "`B` is f32, the variant takes f16"),
        (GEMM, {"A": "f32", "B": "f32", "Y": "f32"}, "gemm.float<f16>.no_bias",
         "`A`, `B` and `Y` are f32, the variant takes f16"),
        (GEMM.replace("f32", "f16"), {"A": "f16", "B": "f16", "Y": "f16"},
         "gemm.float<f16>.no_bias", "`accum_type` is f16, the variant takes f32"),
        (GEMM.replace("f32", "i32"), {"A": "i8", "B": "i8", "Y": "i8"}, "gemm.int8<i8>.no_bias",
         "`A` and `B` carry no `quant`, the variant needs it"),
        (GEMM, {"A": "f16q", "B": "f16", "Y": "f16"}, "gemm.float<f16>.no_bias",
         "`A` carries `quant`, the variant takes none"),
        (BIASED.format("i32"), {"A": "i8q", "B": "i8q", "C": "i8", "Y": "i8"},
         "gemm.int8<i8>.with_bias", "`C` is i8, the variant takes i32"),
        ("quantize.async in A out Y", {"A": "f16", "Y": "i8"}, "quantize<f16, i8>.default",
         "`Y` carries no `quant`, the variant needs it"),
        ("rmsnorm.async in A, B out Y axis=0 epsilon=1.0", {"A": "f16", "B": "f32", "Y": "f16"},
         "norm<f16>.default", "`scale` is f32, the variant takes f16"),
        ("concat.async in A, B, B out Y axis=0", {"A": "i8", "B": "f16", "Y": "i8"},
         "view<i8>.default", "`X` is f16, the variant takes i8"),
    ],
)  # fmt: skip
def test_the_nearest_variant_and_what_differs(
    line: str, elems: dict[str, str], variant: str, differences: str
) -> None:
    typing = typing_of(LITE, line, **elems)

    assert not typing.is_legal
    assert typing.nearest is not None
    assert typing.nearest.instance.id == variant
    assert describe_differences(typing.nearest.differences) == differences


def test_a_variant_that_only_other_devices_have() -> None:
    typing = typing_of(LITE, GEMM, A="f32", B="f32", Y="f32")

    assert not typing.is_legal
    assert typing.instance is not None
    assert typing.instance.id == "gemm.float<f32>.no_bias"
    assert typing_of(REFERENCE, GEMM, A="f32", B="f32", Y="f32").is_legal


def test_without_a_device_the_must_variants_are_there() -> None:
    device = default_device()

    assert typing_of(device, "relu.async in A out Y", A="i8", Y="i8").is_legal
    assert not typing_of(device, "relu.async in A out Y", A="f32", Y="f32").is_legal


def test_a_bias_that_is_missing_is_nearer_than_another_output_type() -> None:
    line = "gemm.async in A, B out Y accum_type=i32"
    typing = typing_of(REFERENCE, line, A="i8q", B="i8q", Y="i16")

    assert typing.nearest is not None
    assert typing.nearest.instance.id == "gemm.int8<i16>.with_bias"
    assert describe_differences(typing.nearest.differences) == "`C` is missing"


def test_a_bias_that_no_variant_has() -> None:
    typing = typing_of(REFERENCE, BIASED.format("f32"), A="bf16", B="bf16", C="bf16", Y="bf16")

    assert typing.nearest is not None
    assert str(typing.nearest.differences[0]) == "`C` is given, the variant takes none"


@pytest.mark.parametrize(
    ("elem", "nearest"), [("f32", "eltwise<f16>.default"), ("i32", "eltwise<i8>.default")]
)
def test_the_nearest_variant_keeps_the_kind_of_type(elem: str, nearest: str) -> None:
    typing = typing_of(LITE, "relu.async in A out Y", A=elem, Y=elem)

    assert typing.nearest is not None
    assert typing.nearest.instance.id == nearest


def test_the_first_of_equally_near_variants_is_taken() -> None:
    typing = typing_of(LITE, "relu.async in A out Y", A="i8", Y="f16")
    order = [match.instance.id for match in typing.available]

    assert typing.nearest is not None
    assert order[:2] == ["eltwise<i8>.default", "eltwise<f16>.default"]
    assert typing.nearest.instance.id == "eltwise<i8>.default"


@pytest.mark.parametrize(
    "line",
    [
        "add.async in A out A",  # one operand too few
        "relu.async in A, A out A",  # one too many
        "maxpool.async in A out A",  # no family
        "relu.async in U out U",  # no element type
    ],
)
def test_what_cannot_be_matched_is_left_alone(line: str) -> None:
    source = Source(
        "test.nem",
        "buffer M : L1 (size=64)\n"
        "let A = region(M, 0, 16) elem=i8, shape=[16], layout=C\n"
        "let U = region(M, 0, 16)\n"
        f"t = {line}\n",
    )
    task = next(iter(resolve(source, parse(source).document).program.tasks))

    assert Matcher(LITE).match(task) is None


def test_an_unknown_opcode_has_no_signature() -> None:
    source = Source("t.nem", "buffer M : L1 (size=4)\nlet A = region(M, 0, 4)\nf.async in A out A")
    task = next(iter(resolve(source, parse(source).document).program.tasks))

    assert signature_of(task) is None


def signature_by(op: str, instance: Instance) -> Signature:
    """The task that a variant describes."""
    opcode = OPCODES[op]
    quantised = {
        spec.name
        for spec in quantised_operands(opcode, instance)
        if instance.attributes.get("quant") == "required"
    }
    elems = {
        spec.name: elem
        for name, elem in instance.operands.items()
        for spec in opcode.operands_bound_to(name)
        if elem != "absent"
    }
    uses = tuple(
        OperandUse(
            spec.name,
            elems.get(spec.name, "i32").replace("any_supported", "u8"),
            quantised >= {spec.name},
        )
        for spec in opcode.operands
        if spec.required or spec.name in elems
    )
    words = {"accum_type": instance.attributes["accum"]} if "accum" in instance.attributes else {}
    return Signature(op, uses, tuple(words.items()))


@pytest.mark.parametrize("op", REFERENCE.effective_by_opcode)
def test_every_variant_matches_the_task_that_it_describes(op: str) -> None:
    instances = REFERENCE.effective_by_opcode[op]
    assert instances
    for instance in instances:
        signature = signature_by(op, instance)
        exact = [match.instance for match in match_variants(signature, instances) if match.is_exact]

        assert exact == [instance]
        found = nearest(list(match_variants(signature, instances)))
        assert found is not None
        assert found.instance == instance


FAMILIES = """
type_family add.mixed {
    A: i8
    B: i16
    Y: i16

    variants:
        default: {} conformance: { MAY }
}

type_family maxpool.floats<T: {f16, f32}> {
    X: T
    Y: T

    variants:
        default: {} conformance: { MAY <f16> MAY <f32> }
}

type_family gemm.plain<T: {f32}> {
    A: T
    B: T
    Y: T

    variants:
        no_bias: {} conformance: { MAY <f32> }
}
"""


@pytest.fixture
def custom(tmp_path: Path) -> Device:
    """A device with families of its user."""
    path = tmp_path / "custom.nem"
    path.write_text(
        'include "npm_lite.nem"\n'
        + FAMILIES
        + "device custom extends npm_lite {\n"
        + "    opcode.extended {\n"
        + "        add.mixed.default\n        maxpool.floats<f16>.default\n"
        + "        gemm.plain<f32>.no_bias\n    }\n}\n",
        encoding="utf-8",
    )
    program = tmp_path / "program.nem"
    program.write_text('include "custom.nem"\ndevice custom\nprogram p:\n', encoding="utf-8")
    source = read_source(program)
    assert isinstance(source, Source)
    root = load(parse(source), default_roots(program))
    target = directive_target(root, link(root))
    assert target.diagnostics == ()
    return target.device


def test_families_of_users_are_matched_like_the_others(custom: Device) -> None:
    line = "add.async in A, B out Y"

    assert typing_of(custom, line, A="i8", B="i16", Y="i16").is_legal
    assert typing_of(custom, line, A="i8", B="i8", Y="i8").is_legal
    assert not typing_of(custom, line, A="i16", B="i8", Y="i16").is_legal
    assert not typing_of(LITE, line, A="i8", B="i16", Y="i16").is_legal


def test_a_family_of_a_user_may_govern_an_opcode_that_has_none(custom: Device) -> None:
    line = "maxpool.async in A out Y"

    assert typing_of(custom, line, A="f16", Y="f16").is_legal
    assert not typing_of(custom, line, A="f32", Y="f32").is_legal
    assert typing_of(custom, line, A="f32", Y="f32").instance is not None
    assert typing_of(custom, line, A="i8", Y="i8").instance is None


def test_an_optional_operand_that_a_family_does_not_speak_of_is_not_allowed(custom: Device) -> None:
    assert typing_of(custom, GEMM, A="f32", B="f32", Y="f32").is_legal
    typing = typing_of(custom, BIASED.format("f32"), A="f32", B="f32", C="f32", Y="f32")
    plain = next(m for m in typing.available if m.instance.family == "gemm.plain")

    assert str(plain.differences[0]) == "`C` is given, the variant takes none"


def test_lists_of_names() -> None:
    assert join_names(["A"]) == "`A`"
    assert join_names(["A", "B"]) == "`A` and `B`"
    assert join_names(["A", "B", "C"]) == "`A`, `B` and `C`"
