"""Every field of an operand: an image in which one of them is another is not proved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from nacre.bind.request import BindOptions
from nacre.nem.api.programs import LoadedProgram
from nacre.tcb.image import Block, Image, Operand, Quant
from nacre.tcbcheck.verify import verify_image
from neminterp import NemInterpreter
from tests.bind.test_fusion import LINKS, change
from tests.bind.test_fusion import PROGRAM as CHAIN
from tests.bind.test_store_formats import BODY, blocks, uarch
from tests.bind.test_store_formats import HEAD as STORE_HEAD
from tests.tcbcheck.bound_images import bind_text

COPIES = """include "npm16k.nem"
device npm16k
program p:
buffer D : DDR (size=8192)
buffer L : L2 (size=65536)
buffer A : L1[0] (size=65536)
let F = region(A, 0, 512) elem=f16, shape=[16, 16], layout=MN
let T = region(A, 4096, 256) elem=i8, shape=[16, 16], strides=[16, 1]
f = transfer.async(dst=region(A, 0, 512), src=region(D, 0, 512))
q = store.async(dst=region(L, 0, 256) elem=i8, shape=[16, 16], layout=MN,
    quant=per_channel(axis=1, scales=[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25],
    zero_points=[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), src=F, deps=[f])
t = store.async(dst=region(L, 4096, 256) elem=i8, shape=[16, 16], layout=MN,
    quant=per_tensor(scale=0.5, zero_point=1), src=F, deps=[f])
e = transfer.async(dst=T, src=region(L, 0, 256) elem=i8, shape=[16, 16], layout=MN, deps=[q])
c = transfer.async(dst=region(A, 8192, 1024) elem=f16, shape=[512], layout=C,
    src=region(L, 8192, 464) elem=f16, shape=[512], layout=C, compressed=sparse)
g = relu.async in F out region(A, 16384, 512) elem=f16, shape=[16, 16], layout=MN deps=[f]
"""  # noqa: E501
Change = Callable[[Block], dict[str, object]]


def of_output(**changes: object) -> Change:
    return lambda block: {"outputs": (replace(block.outputs[0], **changes),)}


def of_input(**changes: object) -> Change:
    def changed(block: Block) -> dict[str, object]:
        assert block.inputs[0] is not None
        return {"inputs": (replace(block.inputs[0], **changes),)}

    return changed


def of_quant(**changes: object) -> Change:
    def changed(block: Block) -> dict[str, object]:
        quant = block.outputs[0].quant
        assert quant is not None
        return of_output(quant=replace(quant, **changes))(block)

    return changed


def of_both(**changes: object) -> Change:
    return lambda block: of_input(**changes)(block) | of_output(**changes)(block)


ONE = Quant((4.0,), (100,))
WRONG: dict[str, tuple[str, Change]] = {
    "scale": ("t", of_quant(scales=(4.0,))),
    "zero point": ("t", of_quant(zero_points=(100,))),
    "no scale": ("t", of_output(quant=None)),
    "scale of the source": ("t", of_input(quant=ONE)),
    "axis": ("q", of_quant(axis=0)),
    "group": ("q", of_quant(group_size=2)),
    "one scale of many": ("q", of_quant(scales=(0.5,) * 16)),
    "one zero of many": ("q", of_quant(zero_points=(0,) * 16)),
    "format": ("t", lambda _: {"format": "u8"}),
    "raw": ("t", lambda _: {"format": "raw"}),
    "element of a store": ("t", of_output(elem="u8")),
    "element of its source": ("t", of_input(elem="bf16")),
    "order of its source": ("t", of_input(strides=(1, 16))),
    "order of a store": ("t", of_output(strides=(1, 16))),
    "order of elements": ("e", of_input(strides=(1, 16))),
    "order of both": ("e", of_both(strides=(1, 16))),
    "element of a copy": ("e", of_both(elem="u8")),
    "scale of a copy": ("e", of_output(quant=ONE)),
    "order of bytes": ("f", lambda block: of_input(dims=(16, 32), strides=(1, 16))(block)
                       | of_output(dims=(16, 32))(block)),
    "element of bytes": ("f", of_output(elem="i8")),
    "number of bytes": ("f", of_input(dims=(2, 256))),
    "scale of bytes": ("f", of_both(quant=ONE)),
    "attributes of a copy": ("f", lambda _: {"attributes": (("saturate", True),)}),
    "compressed elements": ("c", of_input(dims=(510,))),
    "compressed elements of both": ("c", of_both(dims=(510,))),
    "compressed shape": ("c", of_both(dims=(256, 2))),
    "compressed type": ("c", of_both(elem="bf16")),
    "compressed bytes": ("c", of_input(compressed_bytes=460)),
    "order of an operation": ("g", of_input(strides=(1, 16))),
    "order of its result": ("g", of_output(strides=(1, 16))),
    "format of an operation": ("g", lambda _: {"format": "f16"}),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_another_field_of_an_operand_is_found(what: str) -> None:
    program, image = bind_text(COPIES)
    assert verify_image(program.plan, image) == []
    name, changed = WRONG[what]
    broken = change(image, name, **changed(blocks(image)[name]))
    assert broken != image
    codes = {finding.code for finding in verify_image(program.plan, broken)}
    assert codes
    assert codes <= {"TCB81", "TCB82"}


MERGED: dict[str, Change] = {
    "axis": of_quant(axis=0),
    "group": of_quant(group_size=2),
    "zero point": of_quant(zero_points=(4,)),
    "scale of the source": of_input(quant=ONE),
    "order of the source": of_input(strides=(1, 16)),
    "attributes": lambda _: {"attributes": (("rounding", "floor"),)},
}


@pytest.mark.parametrize("what", MERGED)
def test_another_field_of_a_store_that_converts_is_found(what: str) -> None:
    program, image = bind_text(STORE_HEAD + BODY, BindOptions(uarch()))
    assert verify_image(program.plan, image) == []
    broken = change(image, "s", **MERGED[what](blocks(image)["s"]))
    assert {finding.code for finding in verify_image(program.plan, broken)} == {"TCB81"}


def test_dense_strides_mean_what_none_mean() -> None:
    program, image = bind_text(COPIES)
    operand = blocks(image)["g"].inputs[0]
    assert isinstance(operand, Operand)
    same = change(image, "g", inputs=(replace(operand, strides=(16, 1)),))
    assert verify_image(program.plan, same) == []


def streaming(text: str) -> tuple[LoadedProgram, Image]:
    return bind_text(text, BindOptions(uarch(links=LINKS)))


Y = "let Y = region(A, 16384 + (i mod 2) * 2048, 512) elem=f16, shape=[16, 16], layout=MN"
MATERIALIZED = {
    "declared": (CHAIN, CHAIN.replace(Y, f"{Y} @materialized")),
    "written": (CHAIN, CHAIN.replace("out Y deps", "out Y @materialized deps")),
    "read": (CHAIN, CHAIN.replace("in Y out", "in Y @materialized out")),
    "converted": (STORE_HEAD + BODY, STORE_HEAD + BODY.replace("out Q", "out Q @materialized")),
    "converted before": (
        STORE_HEAD + BODY,
        STORE_HEAD + BODY.replace("zero_point=3)\n", "zero_point=3) @materialized\n"),
    ),
}


@pytest.mark.parametrize("where", MATERIALIZED)
def test_a_materialized_value_that_streams_is_found(where: str) -> None:
    text, other = MATERIALIZED[where]
    assert text != other
    program, image = streaming(text)
    assert verify_image(program.plan, image) == []
    asked = NemInterpreter().load_string(other)
    asked.require_runnable()
    codes = {finding.code for finding in verify_image(asked.plan, image)}
    assert codes == {"TCB87"}
    asked, kept = streaming(other)
    assert verify_image(asked.plan, kept) == []
