"""ONX01-ONX11: ONNX models that cannot be brought in."""

from nacre.base.rules import declare

_CLAUSE = "Core IR / Import / ONNX"
_CORE = "Core IR"

ONX01 = declare(
    "ONX01", "onnx-operation", _CLAUSE,
    """
    A node of the model has no form in Core IR: its operation is not known, or not with these
    attributes, types or shapes. So has an input or an output that is no tensor, is of a type that
    Core IR lacks, or has no elements. All are reported at once, each with the reason.
    """, language=_CORE)  # fmt: skip
ONX02 = declare(
    "ONX02", "onnx-dynamic-shape", _CLAUSE,
    """
    An input of the model has a dimension without a size. Core IR has static shapes: give one for
    each such input, as `--shape NAME=1x3x224x224` or `shapes={"NAME": (1, 3, 224, 224)}`.
    """, language=_CORE)  # fmt: skip
ONX03 = declare(
    "ONX03", "onnx-file", _CLAUSE,
    """
    The file cannot be read as an ONNX model: it is missing, cut short, or something else.
    """, language=_CORE)  # fmt: skip
ONX04 = declare(
    "ONX04", "onnx-graph", _CLAUSE,
    """
    The model breaks a rule of ONNX itself: a node uses a tensor that nothing before it defines, a
    name is defined twice, an attribute is missing or of another kind, shapes or types of operands
    do not fit each other, an index that is known lies outside of its axis, an initialiser is
    malformed, a function calls itself, an output is of another element type than declared.
    """, language=_CORE)  # fmt: skip
ONX05 = declare(
    "ONX05", "onnx-external-data", _CLAUSE,
    """
    Weights in a file of their own that is missing, too short or no regular file, or that does not
    lie in the model's folder. A model from a stranger reads nothing else.
    """, language=_CORE)  # fmt: skip
ONX06 = declare(
    "ONX06", "onnx-request", _CLAUSE,
    """
    A shape or a value was given for an input that the model does not have, or one that
    contradicts the model, or something that is no shape and no number.
    """, language=_CORE)  # fmt: skip
ONX07 = declare(
    "ONX07", "onnx-missing", _CLAUSE,
    """
    The package `onnx` is not installed; `pip install "nacre[onnx]"` brings it.
    """, language=_CORE)  # fmt: skip
ONX08 = declare(
    "ONX08", "onnx-declared-shape", _CLAUSE,
    """
    An output has another shape than the model declares for it. Models are known to be wrong about
    this, and onnxruntime runs them, so it is a warning: the shape is the one that is computed.
    """, severity="warning", language=_CORE)  # fmt: skip
ONX09 = declare(
    "ONX09", "onnx-state", _CLAUSE,
    """
    The property `nacre.state` of the model lists what is no state: something else than pairs of
    names, a name that is no input with a default or no output, or two of different types. `to_onnx`
    writes the property; a state is an input that an output feeds in the next run.
    """, language=_CORE)  # fmt: skip
ONX10 = declare(
    "ONX10", "onnx-default", _CLAUSE,
    """
    An input of the model has a default, which is an initialiser of the same name, and the model's
    `ir_version` is 4 or later: it may be given or left out. A module has no such inputs, so it is
    fixed to its default, and no input any more. This is a warning: some exporters list all weights
    as inputs. `--constant NAME=FILE.npy` gives it another value; without the initialiser it is an
    input like the others.
    """, severity="warning", language=_CORE)  # fmt: skip
ONX11 = declare(
    "ONX11", "onnx-encodings", _CLAUSE,
    """
    A file of encodings, which say how tensors of a float model are stored as integers, is damaged,
    names tensors that the model does not have, or says what has no form: integers of other than 4,
    8 or 16 bits, scales by block, another number of scales than the tensor has channels.
    """, language=_CORE)  # fmt: skip
