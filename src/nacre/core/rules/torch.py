"""TCH01-TCH07: PyTorch modules that cannot be brought in."""

from nacre.base.rules import declare

_CLAUSE = "Core IR / Import / PyTorch"
_CORE = "Core IR"

TCH01 = declare(
    "TCH01", "torch-operation", _CLAUSE,
    """
    A node of the exported graph has no form in Core IR: its operation is not known, or not with
    these arguments, types or shapes. All such nodes are reported at once, each with its name, its
    operation, the shapes, the reason and, where one is known, the rewrite that would do.
    """, language=_CORE)  # fmt: skip
TCH02 = declare(
    "TCH02", "torch-dynamic-shape", _CLAUSE,
    """
    An input of the exported program has a dimension without a size. Core IR has static shapes:
    give one for each such input, as `shapes={"x": (1, 3, 224, 224)}`.
    """, language=_CORE)  # fmt: skip
TCH03 = declare(
    "TCH03", "torch-file", _CLAUSE,
    """
    The file cannot be read as a program that `torch.export.save` has written: it is missing, cut
    short, of another format, or of a version that the installed PyTorch does not read.
    """, language=_CORE)  # fmt: skip
TCH04 = declare(
    "TCH04", "torch-export", _CLAUSE,
    """
    `torch.export` cannot make a graph of the module with these arguments, or something else than a
    module, a program or a path was given. The message of PyTorch follows.
    """, language=_CORE)  # fmt: skip
TCH05 = declare(
    "TCH05", "torch-unsafe-file", _CLAUSE,
    """
    The file holds something that PyTorch could only load by running code of the file: a pickled
    object, a compiled library, an expression that is no arithmetic. A program from a stranger runs
    nothing: save the model's tensors as plain weights.
    """, language=_CORE)  # fmt: skip
TCH06 = declare(
    "TCH06", "torch-request", _CLAUSE,
    """
    A shape was given for an input that the program does not have, or one that contradicts it.
    """, language=_CORE)  # fmt: skip
TCH07 = declare(
    "TCH07", "torch-missing", _CLAUSE,
    """
    The package `torch` is not installed; `pip install "nacre[torch]"` brings it.
    """, language=_CORE)  # fmt: skip
