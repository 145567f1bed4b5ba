"""NAC80-NAC97: execution plans: their text, their bytecode, and what stops their machine."""

from nacre.base.rules import declare

_ORCH = "NAC / Orchestrator section (ORCH)"
_FORMAT = "NAC / Orchestrator section (ORCH) / Section format"
_NAC = "NAC"

NAC80 = declare(
    "NAC80", "plan-syntax", _ORCH,
    """
    A line of the text of a plan cannot be read: an unknown instruction, too few operands, an
    operand of another kind, a text without an end.
    """, language=_NAC)  # fmt: skip
NAC81 = declare(
    "NAC81", "plan-name", _ORCH,
    """
    A label or a constant of the text of a plan is defined twice or not at all, or there are more
    names of slots than slots.
    """, language=_NAC)  # fmt: skip
NAC82 = declare(
    "NAC82", "plan-opcode", _ORCH,
    """
    A byte of the bytecode stands where an instruction begins and is none. The numbers 03, 18, 31,
    50, 51, 81 and E1 (hexadecimal) are reserved: how long such an instruction is is not known.
    """, language=_NAC)  # fmt: skip
NAC83 = declare(
    "NAC83", "plan-operand", _ORCH,
    """
    An operand of a plan's instruction has a value that means nothing there, or does not fit in its
    field: an unknown choice, a slot above 255, a jump of more than 32,767 bytes.
    """, language=_NAC)  # fmt: skip
NAC84 = declare(
    "NAC84", "plan-length", _FORMAT,
    """
    The bytecode of a plan ends inside an instruction, or bytes follow its last constant.
    """, language=_NAC)  # fmt: skip
NAC85 = declare(
    "NAC85", "plan-jump", _ORCH,
    """
    A jump of a plan leads to where no instruction begins, or a loop has no end.
    """, language=_NAC)  # fmt: skip
NAC86 = declare(
    "NAC86", "plan-constant", _ORCH,
    """
    An instruction of a plan names a constant that the pool does not have, or one of another type
    than it takes.
    """, language=_NAC)  # fmt: skip
NAC87 = declare(
    "NAC87", "plan-training", _ORCH,
    """
    A plan trains a model, writes the weights of one, or runs blocks of one, that is no NAC model:
    of others the machine knows nothing but their inputs and outputs.
    """, language=_NAC)  # fmt: skip
NAC88 = declare(
    "NAC88", "plan-steps", _ORCH,
    """
    A plan has used up its steps. Each instruction costs one, and one more for every 4096 bytes that
    it works on; a run of a model costs a hundred. Or a caller has named a limit of steps that is no
    integer from 1 on.
    """, language=_NAC)  # fmt: skip
NAC89 = declare(
    "NAC89", "plan-memory", _ORCH,
    """
    What a plan holds in its slots, or an instruction needs on its way, takes more memory than the
    machine may have. It is refused before the memory is taken. Or a caller has named a limit of
    bytes that is no integer from 1 on.
    """, language=_NAC)  # fmt: skip
NAC90 = declare(
    "NAC90", "plan-empty", _ORCH,
    """
    An instruction of a plan uses a slot that nothing has written, or a model that is not loaded.
    """, language=_NAC)  # fmt: skip
NAC91 = declare(
    "NAC91", "plan-value", _ORCH,
    """
    An instruction of a plan cannot be computed for the values at hand: one of another kind, shapes
    that do not fit, an index outside of a tensor, a number without meaning.
    """, language=_NAC)  # fmt: skip
NAC92 = declare(
    "NAC92", "plan-loop", _ORCH,
    """
    A plan leaves or ends a loop that it is not in, or is in more than 64 loops at one time.
    """, language=_NAC)  # fmt: skip
NAC93 = declare(
    "NAC93", "plan-template", _ORCH,
    """
    The template of a STRING_FORMAT has more than `{}`, `{0}` and `{0:.2f}`: attributes, items and
    conversions are not allowed, widths have at most three digits, and a place needs its value.
    """, language=_NAC)  # fmt: skip
NAC94 = declare(
    "NAC94", "plan-path", _ORCH,
    """
    A plan may not use a file: it has no folder, the path leads out of its folder or through a
    link, the file is missing or no file, or the plan may not write.
    """, language=_NAC)  # fmt: skip
NAC95 = declare(
    "NAC95", "plan-file", _ORCH,
    """
    A file that a plan loads is not what the plan says it is, is damaged, or is of a kind that
    the machine does not read. Arrays are `.npy` files without objects; images are PNG with 8 or 16
    bits and without interlacing, or binary PPM and PGM.
    """, language=_NAC)  # fmt: skip
NAC96 = declare(
    "NAC96", "plan-input", _ORCH,
    """
    A plan asks for something that it was not given, was given something that it never asks for,
    or was given an answer that cannot be read as the kind that it asks for.
    """, language=_NAC)  # fmt: skip
NAC97 = declare(
    "NAC97", "plan-call", _ORCH,
    """
    A model or a tokenizer that a plan calls has refused or failed, or has answered with something
    that a plan cannot use. What it said follows.
    """, language=_NAC)  # fmt: skip
