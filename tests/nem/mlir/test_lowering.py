"""Products of matrices in upstream's dialects, lowered to NEM, checked and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nacre import nem
from nacre.base.diagnostics import InputError
from neminterp import NemInterpreter
from tests.nem.mlir.upstream import needs_mlir_opt, run_mlir_opt, through_mlir_opt

pytest.importorskip("xdsl")

Array = npt.NDArray[np.float16]
LAYOUT = "strided<[{}, 1], offset: ?>"


def tiled(rows: int, depth: int, columns: int, tile: int) -> str:
    """A product in tiles, as a compiler of upstream's leaves it: three loops, and subviews."""
    a, b, c = (
        f"memref<{m}x{n}xf16>" for m, n in ((rows, depth), (depth, columns), (rows, columns))
    )
    parts = [f"memref<{tile}x{tile}xf16, {LAYOUT.format(n)}>" for n in (depth, columns, columns)]
    size = f"[{tile}, {tile}] [1, 1]"
    return f"""
func.func @tiled(%A: {a}, %B: {b}, %C: {c}) {{
  affine.for %i = 0 to {rows} step {tile} {{
    affine.for %j = 0 to {columns} step {tile} {{
      affine.for %k = 0 to {depth} step {tile} {{
        %a = memref.subview %A[%i, %k] {size} : {a} to {parts[0]}
        %b = memref.subview %B[%k, %j] {size} : {b} to {parts[1]}
        %c = memref.subview %C[%i, %j] {size} : {c} to {parts[2]}
        linalg.matmul ins(%a, %b : {parts[0]}, {parts[1]}) outs(%c : {parts[2]})
      }}
    }}
  }}
  return
}}
"""


def lowered(text: str) -> str:
    from nacre.nem.mlir.lowering import lower_matmuls

    return lower_matmuls(text)


def matrices(rows: int, depth: int, columns: int) -> list[Array]:
    """Small integers: every sum is exact in f16, in whatever order it is made."""
    random = np.random.default_rng(1)
    shapes = (rows, depth), (depth, columns), (rows, columns)
    return [random.integers(-3, 4, shape).astype(np.float16) for shape in shapes]


def run(program: str, arrays: list[Array]) -> Array:
    interpreter = NemInterpreter()
    result = interpreter.run(
        interpreter.load_string(program), dict(zip("ABC", arrays, strict=True))
    )
    assert result.status == "completed", result.diagnostics
    return np.frombuffer(result.read_buffer("C"), np.float16).reshape(arrays[2].shape)


SIZES = 64, 96, 128, 32


def test_a_tiled_product_is_checked_and_computes_what_numpy_computes() -> None:
    program = nem.from_mlir(lowered(tiled(*SIZES)))
    assert [d for d in nem.check(program, strict=True) if d.severity != "info"] == []
    a, b, c = matrices(*SIZES[:3])
    assert np.array_equal(run(program, [a, b, c]), a @ b + c)


@needs_mlir_opt
def test_what_mlir_opt_prints_is_lowered_and_what_is_lowered_passes_it() -> None:
    text = tiled(*SIZES)
    for options in ([], ["--mlir-print-op-generic"]):
        printed = run_mlir_opt(text, *options)
        assert printed.returncode == 0, printed.stderr
        module = lowered(printed.stdout)
        assert nem.from_mlir(through_mlir_opt(module)) == nem.from_mlir(module)


@pytest.mark.full
def test_a_tiled_product_computes_what_iree_computes() -> None:
    compiler: Any = pytest.importorskip("iree.compiler.tools")
    runtime: Any = pytest.importorskip("iree.runtime")
    rows, depth, columns, _ = SIZES
    a, b, c = (
        f"tensor<{m}x{n}xf16>" for m, n in ((rows, depth), (depth, columns), (rows, columns))
    )
    text = f"""
func.func @main(%A: {a}, %B: {b}, %C: {c}) -> {c} {{
  %0 = linalg.matmul ins(%A, %B : {a}, {b}) outs(%C : {c}) -> {c}
  return %0 : {c}
}}
"""
    bytecode = compiler.compile_str(
        text, target_backends=["llvm-cpu"], extra_args=["--iree-llvmcpu-target-cpu=host"]
    )
    module = runtime.load_vm_flatbuffer(bytecode, driver="local-sync")
    arrays = matrices(rows, depth, columns)
    program = nem.from_mlir(lowered(tiled(*SIZES)))
    assert np.array_equal(run(program, arrays), module.main(*arrays).to_host())


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("xf16", "xf32", "is no matrix of f16"),
        ("affine.for %k = 0 to 96", "affine.for %k = 0 to 0", "runs not at all"),
        ("%C[%i, %j] [32, 32] [1, 1]", "%C[%i, %j] [32, 32] [2, 1]", "with strides"),
        ("  return", "  memref.dealloc %A : memref<64x96xf16>\n  return", "is not lowered"),
        ("  affine.for %i", "  %n = arith.constant 0 : index\n  affine.for %i", "is not lowered"),
    ],
)
def test_what_has_no_form_is_refused_with_its_line(before: str, after: str, reason: str) -> None:
    text = tiled(*SIZES).replace(before, after)
    with pytest.raises(InputError) as caught:
        lowered(text)
    (found,) = caught.value.diagnostics
    assert found.code == "MLR05"
    assert reason in found.message
