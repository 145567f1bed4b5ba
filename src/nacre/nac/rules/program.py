"""NAC17-NAC39, NAC53: what sections promise each other: ids, operands, schedule, weights."""

from nacre.base.rules import declare

_OPS = "NAC / The ABCD instruction format"
_SYSTEM = "NAC / Special (system) operations"
_MMAP = "NAC / Memory map"
_META = "NAC / Metadata sections"
_DATA = "NAC / Data and resource sections / DATA section"
_NAC = "NAC"

NAC17 = declare(
    "NAC17", "constant-type", _META,
    """
    A constant has a type code that the format does not have.
    """, language=_NAC)  # fmt: skip
NAC18 = declare(
    "NAC18", "constant-length", _META,
    """
    The length of a constant contradicts its type: integers and floats have 8 bytes, truth values
    one byte, which is 0 or 1.
    """, language=_NAC)  # fmt: skip
NAC19 = declare(
    "NAC19", "operation-id", _META,
    """
    `CMAP` gives a name to an id that no instruction can have (above 255), to one of a system
    operation (below 10) or to one of a standard operation.
    """, language=_NAC)  # fmt: skip
NAC20 = declare(
    "NAC20", "signature-id", _META,
    """
    `PERM` gives a signature to an id that no instruction can have (above 255), or to 0, which
    stands for no signature.
    """, language=_NAC)  # fmt: skip
NAC21 = declare(
    "NAC21", "operation-undefined", _OPS,
    """
    An instruction has an operation that is no system operation, no standard one of this version,
    and has no name in `CMAP`; or a variant that its system operation does not have.
    """, language=_NAC)  # fmt: skip
NAC22 = declare(
    "NAC22", "signature-undefined", _OPS,
    """
    An instruction has a signature that is not in `PERM`. How long the instruction is cannot be
    told, so nothing behind it is read.
    """, language=_NAC)  # fmt: skip
NAC23 = declare(
    "NAC23", "constants-of-instruction", _OPS,
    """
    The field C of an instruction contradicts the rest of it: its first number says how many follow,
    and there is one for every 0 of field D.
    """, language=_NAC)  # fmt: skip
NAC24 = declare(
    "NAC24", "constant-undefined", _OPS,
    """
    An instruction uses a constant that is not in `CNST`.
    """, language=_NAC)  # fmt: skip
NAC25 = declare(
    "NAC25", "operand-offset", _OPS,
    """
    An operand lies outside of the program, or is no earlier instruction that gives a value: offsets
    of field D are below 0, and the first instruction has index 0.
    """, language=_NAC)  # fmt: skip
NAC26 = declare(
    "NAC26", "argument-code", _OPS,
    """
    A constant is of another kind than its code in the signature says, such as a list for `i`, or
    a code of the signature is none of the format's.
    """, severity="warning", language=_NAC)  # fmt: skip
NAC27 = declare(
    "NAC27", "input-count", _SYSTEM,
    """
    The header counts other user inputs than there are `<INPUT B=0>`. Files of the format's own
    compiler have such inputs where it lost the value of a constant.
    """, language=_NAC)  # fmt: skip
NAC28 = declare(
    "NAC28", "input-name", _DATA,
    """
    A user input has no name or an empty one, or a name belongs to an instruction that is no user
    input.
    """, language=_NAC)  # fmt: skip
NAC29 = declare(
    "NAC29", "output", _SYSTEM,
    """
    The program does not end in its one `<OUTPUT B=0>`, or this does not have so many operands as
    the header counts outputs.
    """, language=_NAC)  # fmt: skip
NAC30 = declare(
    "NAC30", "parameter-undefined", _DATA,
    """
    An instruction loads a parameter that has no name in `DATA` or no tensor, or a tensor has no
    name.
    """, language=_NAC)  # fmt: skip
NAC31 = declare(
    "NAC31", "control-flow", _SYSTEM,
    """
    A branch of `<CONTROL_FLOW>` or `<CONVERGENCE>` leaves the program, overlaps another one, does
    not end in `<OUTPUT B=1>`, or its values are used from outside; the first one does not begin
    behind the instruction; or branches lie in each other more than 64 deep.
    """, language=_NAC)  # fmt: skip
NAC32 = declare(
    "NAC32", "schedule-tick", _MMAP,
    """
    A record of `MMAP` is for a tick that is no instruction, or comes after one of a later tick.
    """, language=_NAC)  # fmt: skip
NAC33 = declare(
    "NAC33", "schedule-action", _MMAP,
    """
    A memory command has a code that the format does not have: they are 10 (SAVE_RESULT), 20 (FREE),
    30 (FORWARD) and 40 (PRELOAD), in v1.8 also 15 and 25.
    """, language=_NAC)  # fmt: skip
NAC34 = declare(
    "NAC34", "schedule-target", _MMAP,
    """
    The target of a memory command contradicts its meaning. SAVE_RESULT names the instruction of its
    own tick, FREE one that was executed, FORWARD a later one that uses the result, PRELOAD a later
    `<INPUT B=1>`.
    """, language=_NAC)  # fmt: skip
NAC35 = declare(
    "NAC35", "used-after-free", _MMAP,
    """
    Who follows the schedule uses memory that it has freed, or frees something twice.
    """, language=_NAC)  # fmt: skip
NAC36 = declare(
    "NAC36", "tensor-type", _DATA,
    """
    The metadata of a tensor names an element type or a quantisation that the format does not have,
    or more than 64 axes.
    """, language=_NAC)  # fmt: skip
NAC37 = declare(
    "NAC37", "tensor-length", _DATA,
    """
    A tensor has another number of bytes than its shape and element type need, or its metadata has
    another length than its fields.
    """, language=_NAC)  # fmt: skip
NAC38 = declare(
    "NAC38", "tensor-quantization", _DATA,
    """
    The scales of a quantised tensor do not fit it: not as many as the axis has places or the tensor
    blocks, an axis that it does not have, a block of 0, elements that are no int8.
    """, language=_NAC)  # fmt: skip
NAC39 = declare(
    "NAC39", "external-weights", _DATA,
    """
    The weights lie in a `.safetensors` file of the same name beside this one, and that file is
    missing, damaged, or lacks a tensor; or `verify` finds another hash than that of the weights
    which the file was written with; or it has a tensor of a type that the format does not have,
    integers without the scales that the quantisation of the file needs, or bytes of no tensor.
    """, language=_NAC)  # fmt: skip
NAC53 = declare(
    "NAC53", "weights-unused", _DATA,
    """
    The weights beside the file have a tensor, or scales, of a name that no parameter of the program
    has. It may be of another model, or have lost its name.
    """, severity="warning", language=_NAC)  # fmt: skip
