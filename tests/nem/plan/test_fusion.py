"""Chains that may be fused, and every reason why a pair is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nacre.nem.plan.fusion.chains import Fusion, find_chains
from nacre.nem.plan.fusion.conditions import REASONS
from neminterp import NemInterpreter
from tests.nem.plan.fusing_programs import GEMM, HEAD, RELU, STORE

IN_PLACE = GEMM + "tR = relu.async in Y out Y deps=[tG]\n"


def fusion_of(text: str, observed: tuple[str, ...] = (), imports: tuple[str, ...] = ()) -> Fusion:
    program = NemInterpreter().load_string(text, imports)
    program.require_runnable()
    names = [mark.name for mark in program.options.imports]
    return find_chains(program.plan, program.device, observed, names)


def chains(fusion: Fusion) -> list[str]:
    return [" ".join(task.name for task in chain.tasks) for chain in fusion.chains]


def refusals(fusion: Fusion) -> dict[str, str]:
    return {f"{r.writer.name} {r.reader.name}": r.reason for r in fusion.refusals}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (GEMM + RELU + STORE, ["tG tR tS"]),
        (GEMM + RELU, ["tG tR"]),
        (IN_PLACE + "tS = store.async(dst=Out, src=Y, deps=[tR])\n", ["tG tR tS"]),
        (GEMM + "tS = store.async(dst=Out, src=Y, deps=[tG])\n", ["tG tS"]),
        ("tR = relu.async in Y out Z\n" + STORE, ["tR tS"]),
        (GEMM + "tR = add.async in Y, B2 out Z deps=[tG]\n" + STORE, ["tG tR tS"]),
        (GEMM + "tR = relu.sync in Y out Z deps=[tG]\n", ["tG tR"]),
        # Raw bytes of what lies dense, and the same elements under another name and shape.
        (GEMM + "tS = store.async(dst=region(Y_L2, 0, 4096), src=region(Y_L1, 0, 4096), deps=[tG])",
         ["tG tS"]),
        (GEMM + "tR = relu.async in Flat out FlatZ deps=[tG]\n", ["tG tR"]),
        # What others wait for the writer, or the reader for others, does not matter.
        (GEMM + "tX = transfer.async(dst=A, src=Out, deps=[tG])\n" + RELU, ["tG tR"]),
        ("tX = transfer.async(dst=B2, src=Out)\n" + GEMM
         + "tR = add.async in Y, B2 out Z deps=[tG, tX]\n", ["tG tR"]),
        (GEMM + "tX = transfer.async(dst=B2, src=Out)\n"
         + "tR = add.async in Y, B2 out Z deps=[tG, tX]\n", ["tG tR"]),
        # Overwritten later: nobody sees the value.
        (GEMM + RELU + "tX = transfer.async(dst=Y, src=Out, deps=[tR])\n", ["tG tR"]),
        ("loop i in [0..3] @max_in_flight(2):\n"
         "let Yi = region(Y_L1, (i mod 2) * 4096, 4096) elem=f16, shape=[32, 64], layout=MN\n"
         "let Zi = region(Z_L1, (i mod 2) * 4096, 4096) elem=f16, shape=[32, 64], layout=MN\n"
         "tG = gemm.async in A, B out Yi accum_type=f32\n"
         "tR = relu.async in Yi out Zi deps=[tG]\nendloop\n", ["tG tR"]),
        # A chain under @deterministic rounds where its tasks do: no bit changes.
        (GEMM.replace("f32\n", "f32 @deterministic\n") + RELU, ["tG tR"]),
    ],
)  # fmt: skip
def test_these_are_fused(body: str, expected: list[str]) -> None:
    extra = """\
let B2 = region(Y_L1, 4096, 4096) elem=f16, shape=[32, 64], layout=MN
let Flat = region(Y_L1, 0, 4096) elem=f16, shape=[2048], layout=C
let FlatZ = region(Z_L1, 0, 4096) elem=f16, shape=[2048], layout=C
"""
    fusion = fusion_of(HEAD + extra + body)
    assert chains(fusion) == expected, refusals(fusion)


LOOP = "loop i in [0..1]:\n{body}\nendloop\n"
STRIDED = """\
let Apart = region(Y_L1, 0, 8064) elem=f16, shape=[32, 64], strides=[126, 1]
let ApartZ = region(Z_L1, 0, 4096) elem=f16, shape=[32, 64], layout=MN
"""
CASES = {
    "units": GEMM + "tR = softmax.async in Y out Z deps=[tG] axis=1\n",
    "memory": "tG = gemm.async in A, B out Out accum_type=f32\n"
    "tR = relu.async in Out out Z deps=[tG]\n",
    "materialized": GEMM.replace("out Y", "out Y @materialized") + RELU,
    "bodies": GEMM + LOOP.format(body="tR = relu.async in Y out Z deps=[tG]"),
    "readers": GEMM + RELU + "tX = transfer.async(dst=Out, src=Y, deps=[tG])\n",
    "elements": GEMM + "let Part = region(Y_L1, 0, 2048) elem=f16, shape=[16, 64], layout=MN\n"
    "let PartZ = region(Z_L1, 0, 2048) elem=f16, shape=[16, 64], layout=MN\n"
    "tR = relu.async in Part out PartZ deps=[tG]\n",
    "token": GEMM + "wait(tG)\ntR = relu.async in Y out Z\n",
    "between": GEMM + "tX = transfer.async(dst=Out, src=A, deps=[tG])\n"
    "tR = relu.async in Y out Z deps=[tG, tX]\n",
    "overlap": GEMM + "tR = relu.async in Y out A2 deps=[tG]\n",
    "bound": GEMM + "tR = relu.async in Y out Z deps=[tG] @resource(CSTL[0])\n"
    "tS = store.async(dst=Out, src=Z, deps=[tR]) @resource(CSTL[1])\n",
    "taken": GEMM + "tH = gemm.async in A, B out Z accum_type=f32\n"
    "tR = add.async in Y, Z out Z deps=[tG, tH]\n",
    "crossing": GEMM + "tH = gemm.async in A, B out Z accum_type=f32\n"
    "tR = relu.async in Y out Y deps=[tG, tH]\ntQ = relu.async in Z out Z deps=[tH, tG]\n",
}
EXTRA = "let A2 = region(A_L1, 0, 4096) elem=f16, shape=[32, 64], layout=MN\n" + STRIDED


@pytest.mark.parametrize("reason", CASES)
def test_every_reason_has_a_pair_that_it_refuses(reason: str) -> None:
    fusion = fusion_of(HEAD + EXTRA + CASES[reason])
    assert reason in refusals(fusion).values(), (chains(fusion), refusals(fusion))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (CASES["readers"], {"tG tR": "readers", "tG tX": "units"}),
        (CASES["bound"], {"tR tS": "bound"}),  # tG tR is fused
        (CASES["taken"], {"tG tR": "taken"}),  # the later value is streamed
        (CASES["crossing"], {"tG tR": "crossing"}),
        (GEMM.replace("async", "sync") + RELU, {"tG tR": "between"}),
        (GEMM + "tX = transfer.sync(dst=Out, src=A)\n" + RELU, {"tG tR": "between"}),
        (GEMM + "tX = transfer.async(dst=Out, src=A)\nwait(tX)\n" + RELU, {"tG tR": "between"}),
        (GEMM + LOOP.format(body="tX = transfer.async(dst=Out, src=A)") + RELU,
         {"tG tR": "between"}),
        # The same operand twice is two readers.
        (GEMM + "tR = add.async in Y, Y out Z deps=[tG]\n", {"tG tR": "readers"}),
        (GEMM + "tR = relu.async in Y out Z deps=[tG]\ntQ = relu.async in Y out Y deps=[tG, tR]\n",
         {"tG tR": "readers", "tG tQ": "readers"}),
        # A later iteration reads it once more, or only the last one reads it at all.
        (LOOP.format(body="tR = relu.async in Y out Z\ntG = gemm.async in A, B out Y deps=[tR]"
                          " accum_type=f32"), {"tG tR": "readers"}),
        # Elements apart: a copy of bytes takes the gaps along.
        ("tG = gemm.async in A, B out Apart accum_type=f32\n"
         "tS = store.async(dst=region(Y_L2, 0, 8064), src=region(Y_L1, 0, 8064), deps=[tG])\n",
         {"tG tS": "readers"}),
        # The middle of a chain is materialised: it ends there.
        (GEMM + RELU.replace("out Z", "out Z @materialized") + STORE, {"tR tS": "materialized"}),
        (GEMM + RELU + STORE.replace("src=Z", "src=Z @materialized"), {"tR tS": "materialized"}),
    ],
)  # fmt: skip
def test_pairs_are_refused_for(body: str, expected: dict[str, str]) -> None:
    fusion = fusion_of(HEAD + EXTRA + body)
    assert refusals(fusion) == expected, chains(fusion)


def test_what_the_host_sees_is_written() -> None:
    text = HEAD + GEMM + RELU + STORE
    assert refusals(fusion_of(text, observed=("Z_L1",))) == {"tR tS": "observed"}
    assert refusals(fusion_of(text, imports=("Z_L1:mutable:noalias",))) == {"tR tS": "imported"}
    assert chains(fusion_of(text, observed=("Z_L1",))) == ["tG tR"]


def test_a_buffer_with_too_many_runs_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.nem.plan.fusion.byte_classes.MOST_RUNS", 0)
    fusion = fusion_of(HEAD + GEMM + RELU)
    assert refusals(fusion) == {"tG tR": "unknown"}


def test_on_a_device_without_a_cstl_nothing_chains() -> None:
    program = NemInterpreter().load_string(HEAD + GEMM + RELU)
    device = program.device
    assert device.topology is not None
    units = {unit: count for unit, count in device.topology.per_engine.items() if unit != "CSTL"}
    bare = replace(device, topology=replace(device.topology, per_engine=units))
    assert refusals(find_chains(program.plan, bare)) == {"tG tR": "units"}


def test_every_reason_is_tried() -> None:
    elsewhere = {"imported", "observed", "unknown", "slower"}  # above, and where plans are timed
    assert {*CASES, *elsewhere} == set(REASONS)
