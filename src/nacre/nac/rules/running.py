"""NAC41-NAC49, NAC52, NAC54: sound files that cannot be run, and what a run is given."""

from nacre.base.rules import declare

_EXECUTION = "NAC / Execution process"
_SYSTEM = "NAC / Special (system) operations"
_NAC = "NAC"

NAC41 = declare(
    "NAC41", "arguments", _EXECUTION,
    """
    The arguments of an instruction do not fit the schema of its operation: too many, one that is
    missing, or one of another kind.
    """, language=_NAC)  # fmt: skip
NAC42 = declare(
    "NAC42", "state", _SYSTEM,
    """
    An `<INPUT B=2>` loads a state that the resource `nacre.state.json` does not describe, or that
    resource is missing or malformed, or a state cannot start as it says: a number that its type
    does not hold, a parameter of another type or shape. The format itself says neither type nor
    initial value of a state.
    """, language=_NAC)  # fmt: skip
NAC43 = declare(
    "NAC43", "interface", _SYSTEM,
    """
    The resource `nacre.interface.json`, which says the types of inputs,
    `nacre.parameters.json`, which has names of parameters that share a tensor,
    `nacre.training.json`, which has names of what is not trained, or
    `nacre.operations.json`, which has what calls give that are known by their names alone, is
    malformed or speaks of an input, a parameter or a call that the program does not have.
    """, language=_NAC)  # fmt: skip
NAC44 = declare(
    "NAC44", "input-missing", _EXECUTION,
    """
    A run is not given one of the inputs. Inputs are never made up or used twice.
    """, language=_NAC)  # fmt: skip
NAC45 = declare(
    "NAC45", "input-unknown", _EXECUTION,
    """
    A run is given an array under a name that no input has.
    """, language=_NAC)  # fmt: skip
NAC46 = declare(
    "NAC46", "input-type", _EXECUTION,
    """
    An array has another element type or shape than the input that it is for. Nothing is converted
    or broadcast in silence.
    """, language=_NAC)  # fmt: skip
NAC47 = declare(
    "NAC47", "instruction-fault", _EXECUTION,
    """
    An instruction cannot be computed for the operands at hand: shapes or element types that do not
    fit, an index outside of a tensor, an argument without meaning. Nothing is returned in the place
    of a result that cannot be computed.
    """, language=_NAC)  # fmt: skip
NAC48 = declare(
    "NAC48", "out-of-memory", _EXECUTION,
    """
    The tensors that are alive at one time need more memory than the run may have: 32 MiB, eight
    times the file, 256 times the inputs, and 64 bytes for each pair of places of their longest
    axis, or what the caller says. Sizes follow from types, so that a run is refused before it
    computes anything; `verify` does so where the file says the types of its inputs. Also a
    `max_bytes=` or `keep_bytes=` that is no such number.
    """, language=_NAC)  # fmt: skip
NAC49 = declare(
    "NAC49", "no-form", _EXECUTION,
    """
    An instruction has no form in Core IR with the shapes at hand: it needs elements that are only
    known in a run, or branches are chosen by them. The runtime runs such a file; `lift` does not
    take it. All such instructions are reported at once.
    """, language=_NAC)  # fmt: skip
NAC52 = declare(
    "NAC52", "too-much-work", _EXECUTION,
    """
    The instructions of a run take more steps than it may take. A step is about one element that is
    computed, or eight products of a sum. A run has 2^27, and four for each element of its inputs
    with each byte of the file and with each element of its inputs, or what the caller says. A
    small file can ask for windows or repetitions that nobody waits for; who means it says so. Also
    a `max_work=` that is no positive integer.
    """, language=_NAC)  # fmt: skip
NAC54 = declare(
    "NAC54", "memory-limit", _EXECUTION,
    """
    A run cannot be had within the memory limit that was given. While an instruction runs, there
    must be room for the weights that it uses, for what it makes, and for results that are used
    later; weights that it does not use are loaded later or again. The message says which
    instruction needs most and what takes the memory there, the help the least limit that can be
    met. Also a `memory_limit=` that is no positive integer.
    """, language=_NAC)  # fmt: skip
NAC55 = declare(
    "NAC55", "no-training", _EXECUTION,
    """
    A model cannot be trained as it was asked: it has no parameters of floats, or none of a name, a
    target does not fit its output, the rate is no number or below 0, there is no such loss, a
    weight was replaced by one of another shape, an optimiser is given what another one remembered,
    or an operation has no gradient.
    """, language=_NAC)  # fmt: skip
