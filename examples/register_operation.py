"""A model with an operation that nacre does not know, as a NAC file: kept, listed, registered, run.

    python examples/register_operation.py

It needs the package `onnx`. docs/nac.md says more, under "Operations nacre does not know".
"""

# ruff: noqa: T201 - it shows what it finds

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnx.parser

from nacre import nac
from nacre.base.diagnostics import InputError

# `Gate` is of nobody's but ours. The model says the types of what it gives: that is enough.
MODEL = """
<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>
gated (float[2, 3] x) => (float[2, 3] y) <float[2, 3] g> {
  r = Relu (x)
  g = com.acme.Gate <beta = 2.0> (x, r)
  y = Neg (g)
}
"""


def gate(x: np.ndarray, weight: np.ndarray, *, beta: float) -> np.ndarray:
    """What the operation computes, in NumPy: operands in order, attributes by name."""
    return x * np.tanh(weight * np.float32(beta))


x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
with TemporaryDirectory() as folder:
    source, path = Path(folder, "gated.onnx"), Path(folder, "gated.nac")
    onnx.save(onnx.parser.parse_model(MODEL), source)

    # 1. The file is built, and has the operation by its name.
    nac.save(nac.build(source), path)
    for finding in nac.verify(path):
        print(f"{finding.severity}[{finding.code}]: {finding.message}")

    # 2. Nothing computes it yet.
    model = nac.load(path)
    try:
        model.run({"x": x})
    except InputError as refused:
        print("refused:", refused.diagnostics[0].code, "-", refused.diagnostics[0].help)

    # 3. With a kernel it runs; the type of the result is the file's.
    nac.register_operation("com.acme::Gate", gate)
    (y,) = model.run({"x": x})
    expected = -(x * np.tanh(np.maximum(x, 0) * np.float32(2)))
    print("runs:", y.dtype, y.shape, "as NumPy says:", np.array_equal(y, expected))
    print("findings now:", nac.verify(path))
