"""CMP01-CMP15: models that cannot be compiled for a device."""

from __future__ import annotations

from nacre.base.rules import declare

_CLAUSE = "Lowering / Core IR to NEM"
_LANGUAGE = "Compiler"

CMP01 = declare(
    "CMP01", "no-lowering", _CLAUSE,
    """
    An operation of the model has no form on the device that the compiler knows. All of them are
    reported at once.
    """, language=_LANGUAGE)  # fmt: skip
CMP02 = declare(
    "CMP02", "no-tile-fits", _CLAUSE,
    """
    Not even the smallest tile of a layer fits in L1 with what it needs beside it: its rows of
    input, its block of weights, its rows of output. Or its padding is as high as its window, and
    rows of its output see nothing else.
    """, language=_LANGUAGE)  # fmt: skip
CMP03 = declare(
    "CMP03", "precision-not-supported", _CLAUSE,
    """
    The device has no type combination for an operation in the precision that was asked for.
    """, language=_LANGUAGE)  # fmt: skip
CMP04 = declare(
    "CMP04", "compile-request", _CLAUSE,
    """
    What the compiler was asked for does not exist: a precision, a device, a kind of source.
    """, language=_LANGUAGE)  # fmt: skip
CMP05 = declare(
    "CMP05", "memory-too-small", _CLAUSE,
    """
    Weights, inputs, outputs and the tensors between layers do not fit in DDR.
    """, language=_LANGUAGE)  # fmt: skip
CMP06 = declare(
    "CMP06", "no-sound-plan", _CLAUSE,
    """
    The plan breaks a rule of NEM on this device even in its plainest form, one tile at a time: the
    device lacks a unit that every plan needs, or its sequencer keeps too few tokens.
    """, language=_LANGUAGE)  # fmt: skip
CMP07 = declare(
    "CMP07", "bundle-unreadable", _CLAUSE,
    """
    A bundle's folder lacks a file, or a file of it is damaged or was written by something else.
    """, language=_LANGUAGE)  # fmt: skip
CMP08 = declare(
    "CMP08", "calibration-missing", _CLAUSE,
    """
    The model is to run on integers of 8 bits, and nothing says which ranges its values have: it
    carries no scales of its own, and no calibration data was given. A handful of inputs as the
    model will see them is enough.
    """, language=_LANGUAGE)  # fmt: skip
CMP09 = declare(
    "CMP09", "calibration-data", _CLAUSE,
    """
    Calibration data does not fit the model: an input is missing or unknown, an array has another
    type or shape, there is no sample, or an element is not finite; or its file is damaged. A mask
    that is added before a softmax may hide with minus infinity. Everything that is wrong is
    reported at once.
    """, language=_LANGUAGE)  # fmt: skip
CMP10 = declare(
    "CMP10", "quantise-request", _CLAUSE,
    """
    The quantiser was asked for something that does not exist: an observer, a layer of the
    precision map, a precision for it.
    """, language=_LANGUAGE)  # fmt: skip
CMP11 = declare(
    "CMP11", "folder-in-use", _CLAUSE,
    """
    A bundle is to be written into a folder that holds something else. Its files have names that a
    folder of models may well have, as `model.core`: nothing of it is written over. A folder that
    is empty, missing or a bundle's is taken; so is any other with `--force`, or `force=True` in
    Python. A file that the command reads is never written over.
    """, language=_LANGUAGE)  # fmt: skip
CMP12 = declare(
    "CMP12", "input-not-finite", _CLAUSE,
    """
    An input of a plan on integers of 8 bits has NaN or infinities. Integers have none: NaN becomes
    the real value 0, an infinity the end of the range, at the input or, where its first layers
    stay floats, behind them. Infinities of a mask are no loss: it stays f32 until it has hidden
    what it hides. In Python this is a `UserWarning`.
    """, severity="warning", language=_LANGUAGE)  # fmt: skip
CMP13 = declare(
    "CMP13", "output-not-finite", _CLAUSE,
    """
    A run of a plan gave NaN or infinities though all its inputs are finite. f16 ends at 65504, and
    what leaves it is infinite from there on; or the model itself divides by 0. `nacre validate`
    with the same inputs tells which. In Python this is a `UserWarning`.
    """, severity="warning", language=_LANGUAGE)  # fmt: skip
CMP14 = declare(
    "CMP14", "no-decompression-on-device", _CLAUSE,
    """
    Weights are to be compressed, and the device has no unit that decompresses them (`WDM`), or one
    that knows no form.
    """, language=_LANGUAGE)  # fmt: skip
CMP15 = declare(
    "CMP15", "labelled-data", _CLAUSE,
    """
    Labels do not fit what a model makes, or the metric that was asked for: another number than
    there are samples, a class that the model does not have, another shape. Or a folder of pictures
    and the file that says how they become inputs do not go together, or hold what they may not.
    """, language=_LANGUAGE)  # fmt: skip
