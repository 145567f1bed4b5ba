from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import jsonschema
import pytest

from nacre.nem.spec import opcode_rows
from nacre.nem.spec import opcodes as registry
from nacre.nem.spec.opcodes import OPCODES, AttributeSpec, Opcode, OperandSpec, opcode
from nacre.nem.spec.units import UNITS

ROOT = Path(__file__).resolve().parents[3]
SPEC = ROOT / "src" / "nacre" / "nem" / "spec"

EVERY_OPCODE = pytest.mark.parametrize("op", OPCODES.values(), ids=lambda op: op.name)


def load_tool(name: str) -> ModuleType:
    """A script of tools/, which is no package, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


generator = load_tool("generate_opcodes")


def existing(name: str) -> Opcode:
    found = opcode(name)
    assert found is not None, f"no opcode `{name}`"
    return found


def signature(op: Opcode) -> str:
    """The operands as nem_facts.md writes them: `A,B,C? -> Y`, `X.. -> Y`."""

    def side(operands: tuple[OperandSpec, ...]) -> str:
        marks = ("" if o.required else "?" for o in operands)
        dots = (".." if o.variadic else "" for o in operands)
        names = (o.name for o in operands)
        return ",".join("".join(parts) for parts in zip(names, marks, dots, strict=True))

    return f"{side(op.inputs)} -> {side(op.outputs)}"


def test_the_registry_satisfies_its_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(generator.load_schema())
    assert generator.load_registry()["version"] == registry.REGISTRY_VERSION


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("opcodes", 0, "colour"), "red"),
        (("opcodes", 0, "operands", 0, "colour"), "red"),
        (("opcodes", 2, "attributes", 0, "colour"), "red"),
        (("opcodes", 0, "category"), "magic"),
        (("opcodes", 0, "unit"), "GPU"),
        (("opcodes", 2, "operands", 0, "rank"), 2),  # beside min_rank
        (("opcodes", 2, "attributes", 0, "default"), "i32"),  # of a required attribute
        (("opcodes", 2, "attributes", 0, "length"), 3),  # of a scalar
    ],
)
def test_the_schema_rejects_what_it_does_not_know(path: tuple[Any, ...], value: object) -> None:
    document = generator.load_registry()
    *parents, key = path
    place = document
    for parent in parents:
        place = place[parent]
    place[key] = value
    assert not jsonschema.Draft202012Validator(generator.load_schema()).is_valid(document)


def test_the_table_is_what_the_registry_says() -> None:
    assert (SPEC / "opcode_table.py").read_text() == generator.render_table()


def test_the_reference_page_is_what_the_registry_says() -> None:
    assert (ROOT / "docs" / "reference" / "opcodes.md").read_text() == generator.render_docs()


@pytest.mark.heavy("a process that reads the whole table")
def test_check_fails_for_a_stale_file_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "opcode_table.py"
    monkeypatch.setattr(generator, "ROOT", tmp_path)
    monkeypatch.setattr(generator, "TABLE", table)
    monkeypatch.setattr(generator, "DOCS", tmp_path / "reference" / "opcodes.md")
    assert generator.main(["--check"]) == 1
    assert not table.exists()
    assert generator.main([]) == 0
    assert table.read_text() == generator.render_table()
    assert generator.main(["--check"]) == 0
    assert "opcode_table.py is stale" in capsys.readouterr().out


def test_the_types_name_what_the_schema_allows() -> None:
    definitions = generator.load_schema()["$defs"]
    fields = definitions["opcode"]["properties"]
    assert list(get_args(opcode_rows.Category)) == fields["category"]["enum"]
    assert list(get_args(opcode_rows.Hardware)) == fields["hardware"]["enum"]
    assert list(get_args(opcode_rows.Status)) == fields["status"]["enum"]
    assert list(get_args(opcode_rows.Trait)) == fields["traits"]["items"]["enum"]
    operand, attribute = (definitions[key]["properties"] for key in ("operand", "attribute"))
    assert list(get_args(opcode_rows.Role)) == operand["role"]["enum"]
    assert list(get_args(opcode_rows.AttributeType)) == attribute["type"]["enum"]


def test_loading_the_opcodes_needs_neither_yaml_nor_numpy() -> None:
    program = (
        "import sys; import nacre.nem.spec.opcodes; "
        "print(sorted({'yaml', 'jsonschema', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_the_counts_are_those_of_version_1_0() -> None:
    first = [existing(name) for name, *_ in FACTS]
    assert len(first) == 49
    assert len({op.category for op in first}) == 13
    assert Counter(op.status for op in first) == {"stable": 41, "future": 8}
    hardware = Counter(op.hardware for op in first)
    assert hardware == {"supported": 37, "future": 8, "partial": 3, "escape_hatch": 1}
    assert Counter(op.unit for op in first) == {"CSTL": 34, "VPU": 8, "NMU": 6, "varies": 1}


def test_every_family_stands_in_the_baseline_and_every_family_there_is_used() -> None:
    text = (SPEC / "nem_baseline_1.0.nem").read_text()
    declared = set(re.findall(r"type_family (\S+?)[<\s{]", text))
    assert {family for op in OPCODES.values() for family in op.families} == declared
    assert len({family for *_, families in FACTS for family in families}) == 13


@EVERY_OPCODE
def test_names_inside_an_opcode_refer_to_its_own_operands(op: Opcode) -> None:
    names = {operand.name for operand in op.operands}
    bound = {name for _, members in op.bindings for name in members}
    quantised = {name for _, members in op.quant_on for name in members}
    assert bound | quantised | set(op.same_elem) <= names
    assert {family for family, _ in op.quant_on} <= set(op.families)
    assert not (op.families and op.same_elem), "a family already says which types go together"


@EVERY_OPCODE
def test_operands_can_be_told_apart_by_position(op: Opcode) -> None:
    for side in (op.inputs, op.outputs):
        assert side, f"`{op.name}` needs operands on both sides"
        assert [o.required for o in side] == sorted((o.required for o in side), reverse=True)
        assert not any(o.variadic for o in side[:-1]), "only the last one may vary in number"
    assert op.min_outputs >= 1


@EVERY_OPCODE
def test_units_are_known_and_the_primary_one_comes_first(op: Opcode) -> None:
    assert set(op.eligible_units) <= set(UNITS)
    assert op.unit in ("varies", op.eligible_units[0])
    if op.category != "data_movement":
        assert "VPU" in op.eligible_units, "the VPU runs what no other unit can"
    assert op.forms == ("async", "sync")


PYTHON_TYPES = {
    "int": int,
    "float": float,
    "bool": bool,
    "elem_type": str,
    "string": str,
    "id": str,
}


@pytest.mark.parametrize(
    "attribute",
    [pytest.param(a, id=f"{op.name}.{a.name}") for op in OPCODES.values() for a in op.attributes],
)
def test_defaults_have_the_type_and_the_values_that_are_declared(attribute: AttributeSpec) -> None:
    if attribute.default is None:
        assert attribute.required or attribute.name == "saturate", "optional, with no default"
    else:
        assert not attribute.required
        assert type(attribute.default) is PYTHON_TYPES[attribute.type]
        assert not attribute.allowed or attribute.default in attribute.allowed
        assert attribute.minimum is None or int(attribute.default) >= attribute.minimum


@EVERY_OPCODE
def test_elementwise_opcodes_saturate_on_demand_unless_plain_integers_mean_nothing(
    op: Opcode,
) -> None:
    takes_integers = op.families == ("eltwise",) and "integers_need_quant" not in op.traits
    assert (op.attribute("saturate") is not None) == (takes_integers or op.name == "cast")


# From nem_facts.md 3.1: opcode, operands, required attributes, families. This is version 1.0, which
# others have published; what is new since then stands in the registry alone.
ELTWISE, VIEW = ("eltwise",), ("view",)
UNARY = ("relu", "sigmoid", "tanh", "exp", "log", "sqrt", "abs", "neg", "gelu", "silu")
BINARY = ("add", "sub", "mul", "div", "min", "max", "pow")
CONVOLUTION = "pads strides dilations accum_type"
FACTS: list[tuple[str, str, str, tuple[str, ...]]] = [
    ("transfer", "src -> dst", "", ()),
    ("store", "src -> dst", "", ()),
    ("gemm", "A,B,C? -> Y", "accum_type", ("gemm.float", "gemm.int8", "gemm.int4")),
    ("matmul", "A,B -> Y", "accum_type", ("gemm.float", "gemm.int8", "gemm.int4")),
    ("conv2d", "X,W,B? -> Y", CONVOLUTION, ("conv2d.float", "conv2d.int8", "conv2d.int4")),
    ("conv1d", "X,W,B? -> Y", CONVOLUTION, ()),
    ("conv3d", "X,W,B? -> Y", CONVOLUTION, ()),
    ("depthwise_conv2d", "X,W,B? -> Y", CONVOLUTION, ()),
    ("leaky_relu", "X -> Y", "alpha", ELTWISE),
    ("clamp", "X -> Y", "min_val max_val", ELTWISE),
    ("transpose", "X -> Y", "perm", VIEW),
    ("reshape", "X -> Y", "target_shape", VIEW),
    ("slice", "X -> Y", "starts ends axes steps", VIEW),
    ("concat", "X.. -> Y", "axis", VIEW),
    ("split", "X -> Y..", "axis split_sizes", VIEW),
    ("pad", "X -> Y", "pads mode", VIEW),
    ("gather", "X,indices -> Y", "axis", VIEW),
    ("layernorm", "X,scale?,bias? -> Y", "axis epsilon", ("norm",)),
    ("rmsnorm", "X,scale? -> Y", "axis epsilon", ("norm",)),
    ("cast", "X -> Y", "", ("cast",)),
    ("quantize", "X -> Y", "", ("quantize",)),
    ("dequantize", "X -> Y", "", ("dequantize",)),
    ("compute", "X.. -> Y..", "op", ()),
    *((name, "X -> Y", "kernel_shape pads strides", ()) for name in ("maxpool", "avgpool")),
    *((f"reduce_{name}", "X -> Y", "axes keepdims", ()) for name in ("sum", "max", "min")),
    *((name, "X -> Y", "axis keepdims", ()) for name in ("argmax", "argmin")),
    *((name, "X -> Y", "axis", ("softmax",)) for name in ("softmax", "log_softmax")),
    *((name, "A,B -> Y", "", ELTWISE) for name in BINARY),
    *((name, "X -> Y", "", ELTWISE) for name in UNARY),
]


@pytest.mark.parametrize(("name", "operands", "attributes", "families"), FACTS)
def test_signatures_are_those_of_the_public_registry(
    name: str, operands: str, attributes: str, families: tuple[str, ...]
) -> None:
    op = existing(name)
    assert signature(op) == operands
    assert [a.name for a in op.required_attributes] == attributes.split()
    assert op.families == families


def test_the_facts_are_about_all_opcodes_of_version_1_0() -> None:
    names = [name for name, *_ in FACTS]
    assert len(names) == len(set(names))
    assert OPCODES.keys() >= set(names)
    assert (OPCODES.keys() == set(names)) == (registry.REGISTRY_VERSION == "1.0")


@pytest.mark.parametrize(
    ("name", "operand", "rank", "min_rank", "layout"),
    [
        ("gemm", "A", None, 2, None),
        ("matmul", "B", None, 2, None),
        ("conv2d", "X", 4, None, "NHWC"),
        ("conv2d", "W", 4, None, "HWIO"),
        ("conv2d", "B", 1, None, None),
        ("conv1d", "X", 3, None, "NWC"),
        ("conv1d", "W", 3, None, "WIO"),
        ("conv3d", "X", 5, None, "NDHWC"),
        ("conv3d", "W", 5, None, "DHWIO"),
        ("depthwise_conv2d", "W", 4, None, None),
        ("maxpool", "X", 4, None, "NHWC"),
        ("layernorm", "scale", 1, None, None),
        ("relu", "X", None, None, None),
    ],
)
def test_ranks_and_layouts_are_constrained_where_the_texts_say(
    name: str, operand: str, rank: int | None, min_rank: int | None, layout: str | None
) -> None:
    found = existing(name).operand(operand)
    assert found is not None
    assert (found.rank, found.min_rank, found.layout) == (rank, min_rank, layout)


@pytest.mark.parametrize(
    ("name", "attribute", "default", "allowed"),
    [
        ("conv2d", "groups", 1, ()),
        ("pad", "constant_value", 0.0, ()),
        ("pad", "mode", None, ("constant", "edge", "reflect")),
        ("gelu", "approximate", "none", ("none", "tanh")),
        ("add", "saturate", False, ()),
        ("cast", "saturate", None, ()),
        ("cast", "rounding", "nearest_even", ("nearest_even", "toward_zero", "floor", "ceil")),
    ],
)
def test_defaults_and_closed_values(
    name: str, attribute: str, default: object, allowed: tuple[str, ...]
) -> None:
    found = existing(name).attribute(attribute)
    assert found is not None
    assert (found.default, found.allowed) == (default, allowed)


@pytest.mark.parametrize(
    ("name", "least_in", "most_in", "least_out", "most_out"),
    [
        ("relu", 1, 1, 1, 1),
        ("gemm", 2, 3, 1, 1),
        ("layernorm", 1, 3, 1, 1),
        ("concat", 1, None, 1, 1),
        ("split", 1, 1, 1, None),
        ("compute", 1, None, 1, None),
    ],
)
def test_operand_counts(
    name: str, least_in: int, most_in: int | None, least_out: int, most_out: int | None
) -> None:
    op = existing(name)
    assert (op.min_inputs, op.max_inputs) == (least_in, most_in)
    assert (op.min_outputs, op.max_outputs) == (least_out, most_out)


@pytest.mark.parametrize(
    ("name", "family_operand", "operands"),
    [
        ("gemm", "C", ["C"]),
        ("matmul", "C", []),
        ("add", "input", ["A", "B"]),
        ("relu", "output", ["Y"]),
        ("gather", "input", ["X"]),
        ("layernorm", "input", ["X", "scale", "bias"]),
        ("dequantize", "src", ["X"]),
        ("conv1d", "W", ["W"]),
    ],
)
def test_a_family_operand_means_these_operands(
    name: str, family_operand: str, operands: list[str]
) -> None:
    assert [o.name for o in existing(name).operands_bound_to(family_operand)] == operands


@pytest.mark.parametrize(
    ("name", "family", "operands"),
    [
        ("conv2d", "conv2d.int8", ["X", "W"]),
        ("conv2d", "conv2d.int4", ["W"]),
        ("gemm", "gemm.int8", ["A", "B"]),
        ("matmul", "gemm.int4", ["B"]),
    ],
)
def test_required_quant_means_these_operands(name: str, family: str, operands: list[str]) -> None:
    assert [o.name for o in existing(name).quant_operands(family)] == operands


def test_matmul_matches_no_variant_with_a_bias() -> None:
    assert existing("matmul").allows_variant("no_bias")
    assert not existing("matmul").allows_variant("with_bias")
    assert existing("gemm").allows_variant("with_bias")


def test_a_family_governs_the_opcodes_that_its_id_begins_with() -> None:
    assert existing("matmul").family_domains == ("matmul", "gemm")
    assert existing("relu").family_domains == ("relu", "eltwise")
    assert existing("conv1d").family_domains == ("conv1d",)


def test_only_secondary_operands_may_stay_outside_l1() -> None:
    outside = {o.name for op in OPCODES.values() for o in op.operands if not o.is_main}
    assert outside == {"src", "dst", "B", "C", "scale", "bias", "indices", "X"}
    assert [o.is_main for o in existing("gather").inputs] == [False, False]
    assert [o.is_main for o in existing("conv2d").inputs] == [True, True, False]


def test_an_unknown_opcode_is_none() -> None:
    assert opcode("foo") is None
    assert opcode("relu.async") is None
    assert existing("relu").operand("Z") is None
    assert existing("relu").attribute("alpha") is None


def test_a_name_that_is_declared_twice_fails() -> None:
    relu = existing("relu")
    with pytest.raises(ValueError, match="operand of `relu` `X` is declared twice"):
        Opcode(**{**fields_of(relu), "operands": (*relu.operands, relu.operands[0])})


def fields_of(op: Opcode) -> dict[str, Any]:
    return {name: getattr(op, name) for name in Opcode.__struct_fields__}
