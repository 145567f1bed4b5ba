"""MDL01-MDL02: files that are no models."""

from nacre.base.rules import declare

_CLAUSE = "Core IR / Import"
_CORE = "Core IR"

MDL01 = declare(
    "MDL01", "model-suffix", _CLAUSE,
    """
    The suffix of a file does not say what kind of model it is: `.core` is a module of Core IR,
    `.onnx` an ONNX model, `.pt2` a program exported from PyTorch, `.nac` a file of NAC.
    """, language=_CORE)  # fmt: skip
MDL02 = declare(
    "MDL02", "model-shapes", _CLAUSE,
    """
    Shapes were given for a model, or for an input, whose shapes are fixed.
    """, language=_CORE)  # fmt: skip
