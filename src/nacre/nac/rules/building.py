"""NAC50-NAC51: what a file is asked to be made of."""

from nacre.base.diagnostics import InputError
from nacre.base.rules import declare
from nacre.base.source import whole_file

_ECOSYSTEM = "NAC / Overall ecosystem architecture"
_HEADER = "NAC / File header"
_NAC = "NAC"

NAC50 = declare(
    "NAC50", "build-request", _ECOSYSTEM,
    """
    A file cannot be built of what was given: a source that is no model, a quantisation that the
    format does not have, a pattern that no weight has a name like. Nor can it be saved over a
    folder, or with weights that are neither `internal` nor `external`.
    """, language=_NAC)  # fmt: skip
NAC51 = declare(
    "NAC51", "weights-widened", _HEADER,
    """
    A file has weights of 16 bits of its own beside such as are to be stored as FP16. The header
    alone says FP16, and readers then widen every tensor of that type to f32: the program would
    compute with other types than it has. A file that is built of a model has a cast for each.
    """, language=_NAC)  # fmt: skip


def refusal(message: str, help: str | None = None) -> InputError:
    """The refusal of what was asked for."""
    return InputError([NAC50.at(whole_file("<build>"), message, help=help)])
