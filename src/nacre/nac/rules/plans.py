"""NAC70-NAC87: execution plans: their text, their bytecode, and what stops their machine."""

from nacre.base.rules import declare

_ORCH = "NAC / Orchestrator section (ORCH)"
_FORMAT = "NAC / Orchestrator section (ORCH) / Section format"
_MEP = "MEP"  # the language of plans

NAC70 = declare(
    "NAC70", "plan-syntax", _ORCH,
    """
    A line of the text of a plan cannot be read: an unknown instruction, too few operands, an
    operand of another kind, a text without an end.
    """, language=_MEP)  # fmt: skip
NAC71 = declare(
    "NAC71", "plan-name", _ORCH,
    """
    A label or a constant of the text of a plan is defined twice or not at all, or there are more
    names of slots than slots.
    """, language=_MEP)  # fmt: skip
NAC72 = declare(
    "NAC72", "plan-opcode", _ORCH,
    """
    A byte of the bytecode stands where an instruction begins and is none. The numbers 03, 18, 31,
    50, 51, 81 and E1 (hexadecimal) are reserved: how long such an instruction is is not known.
    """, language=_MEP)  # fmt: skip
NAC73 = declare(
    "NAC73", "plan-operand", _ORCH,
    """
    An operand of a plan's instruction has a value that means nothing there, or does not fit in its
    field: an unknown choice, a slot above 255, a jump of more than 32,767 bytes.
    """, language=_MEP)  # fmt: skip
NAC74 = declare(
    "NAC74", "plan-length", _FORMAT,
    """
    The bytecode of a plan ends inside an instruction, or bytes follow its last constant.
    """, language=_MEP)  # fmt: skip
NAC75 = declare(
    "NAC75", "plan-jump", _ORCH,
    """
    A jump of a plan leads to where no instruction begins, or a loop has no end.
    """, language=_MEP)  # fmt: skip
NAC76 = declare(
    "NAC76", "plan-constant", _ORCH,
    """
    An instruction of a plan names a constant that the pool does not have, or one of another type
    than it takes.
    """, language=_MEP)  # fmt: skip
NAC77 = declare(
    "NAC77", "plan-training", _ORCH,
    """
    A plan has an instruction that trains a model or saves its weights. The machine runs models
    only; such a plan is refused before its first instruction.
    """, language=_MEP)  # fmt: skip
NAC78 = declare(
    "NAC78", "plan-steps", _ORCH,
    """
    A plan has used up its steps. Each instruction costs one, and one more for every 4096 bytes that
    it works on; a run of a model costs a hundred.
    """, language=_MEP)  # fmt: skip
NAC79 = declare(
    "NAC79", "plan-memory", _ORCH,
    """
    What a plan holds in its slots, or an instruction needs on its way, takes more memory than the
    machine may have. It is refused before the memory is taken.
    """, language=_MEP)  # fmt: skip
NAC80 = declare(
    "NAC80", "plan-empty", _ORCH,
    """
    An instruction of a plan uses a slot that nothing has written, or a model that is not loaded.
    """, language=_MEP)  # fmt: skip
NAC81 = declare(
    "NAC81", "plan-value", _ORCH,
    """
    An instruction of a plan cannot be computed for the values at hand: one of another kind, shapes
    that do not fit, an index outside of a tensor, a number without meaning.
    """, language=_MEP)  # fmt: skip
NAC82 = declare(
    "NAC82", "plan-loop", _ORCH,
    """
    A plan leaves or ends a loop that it is not in, or is in more than 64 loops at one time.
    """, language=_MEP)  # fmt: skip
NAC83 = declare(
    "NAC83", "plan-template", _ORCH,
    """
    The template of a STRING_FORMAT has more than `{}`, `{0}` and `{0:.2f}`: attributes, items and
    conversions are not allowed, widths have at most three digits, and a place needs its value.
    """, language=_MEP)  # fmt: skip
NAC84 = declare(
    "NAC84", "plan-path", _ORCH,
    """
    A plan may not use a file: it has no folder, the path leads out of its folder or through a
    link, the file is missing or no file, or the plan may not write.
    """, language=_MEP)  # fmt: skip
NAC85 = declare(
    "NAC85", "plan-file", _ORCH,
    """
    A file that a plan loads is not what the plan says it is, is damaged, or is of a kind that
    the machine does not read. Arrays are `.npy` files without objects; images are PNG with 8 or 16
    bits and without interlacing, or binary PPM and PGM.
    """, language=_MEP)  # fmt: skip
NAC86 = declare(
    "NAC86", "plan-input", _ORCH,
    """
    A plan asks for something that it was not given, was given something that it never asks for,
    or was given an answer that cannot be read as the kind that it asks for.
    """, language=_MEP)  # fmt: skip
NAC87 = declare(
    "NAC87", "plan-call", _ORCH,
    """
    A model or a tokenizer that a plan calls has refused or failed, or has answered with something
    that a plan cannot use. What it said follows.
    """, language=_MEP)  # fmt: skip
