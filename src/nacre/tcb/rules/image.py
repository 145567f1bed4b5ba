"""TCB20-TCB38: promises of an image, whatever it was read from."""

from nacre.base.rules import declare

_MACHINE = "TCB / Images / Machine and memories"
_BLOCKS = "TCB / Images / Blocks"
_ORDER = "TCB / Images / Order"
_TCB = "TCB"

TCB20 = declare(
    "TCB20", "machine", _MACHINE,
    """
    The machine of an image cannot be: it has no engine, something of a negative number, one name
    twice, or a figure that there is not.
    """, language=_TCB)  # fmt: skip
TCB21 = declare(
    "TCB21", "memory-unknown", _MACHINE,
    """
    An operand, a port, a buffer or a constant lies in a memory that the machine does not have.

    Memories are called as the machine calls them; those of an engine have its number behind:
    `L1[0]`.
    """, language=_TCB)  # fmt: skip
TCB22 = declare(
    "TCB22", "operand-outside", _BLOCKS,
    """
    Bytes of an operand lie outside its memory, in some iteration of the repeats around it.
    """, language=_TCB)  # fmt: skip
TCB23 = declare(
    "TCB23", "operand-layout", _BLOCKS,
    """
    The elements of an operand cannot lie as it says: an element type that there is not, a size
    below 1, strides or scales for another number of dimensions, a compression that the elements
    do not fit.
    """, language=_TCB)  # fmt: skip
TCB24 = declare(
    "TCB24", "tag-outside", _ORDER,
    """
    A block names a counter that is not there: its index is negative or beyond those of its engine
    or of the device, in some iteration; or it belongs to the engine of another stream.
    """, language=_TCB)  # fmt: skip
TCB25 = declare(
    "TCB25", "unit-unknown", _BLOCKS,
    """
    A task occupies a unit that the machine does not have, an instance beyond their number, or one
    for a negative time.
    """, language=_TCB)  # fmt: skip
TCB26 = declare(
    "TCB26", "operation-unknown", _BLOCKS,
    """
    A task's operation is no primitive, and neither `transfer` nor `store`.
    """, language=_TCB)  # fmt: skip
TCB27 = declare(
    "TCB27", "term", _BLOCKS,
    """
    A term has no value: it names the counter of a repeat that is not around it, divides by 0,
    leaves 64 bits, or is larger than terms are read.
    """, language=_TCB)  # fmt: skip
TCB28 = declare(
    "TCB28", "chain", _BLOCKS,
    """
    A value is streamed from no block, or to none.

    A block that is chained writes its first output to `stream`, and the next block of the same
    stream and repeat reads it: elements that lie alike, or as many bytes where they are dense.
    """, language=_TCB)  # fmt: skip
TCB29 = declare(
    "TCB29", "placement", _MACHINE,
    """
    A buffer lies outside its memory, has a name that another has, or shares bytes with one.
    """, language=_TCB)  # fmt: skip
TCB30 = declare(
    "TCB30", "port", _MACHINE,
    """
    A port lies outside its memory, has a name that another has, or another size than its
    elements.
    """, language=_TCB)  # fmt: skip
TCB31 = declare(
    "TCB31", "constant", _MACHINE,
    """
    A constant lies outside its memory, or shares bytes with another.
    """, language=_TCB)  # fmt: skip
TCB32 = declare(
    "TCB32", "position-order", _ORDER,
    """
    The items of a stream or of a repeat do not stand in the order of their positions, or one
    stands before the repeat that it is in. A chain stands where its last block does.
    """, language=_TCB)  # fmt: skip
TCB33 = declare(
    "TCB33", "block-kind", _BLOCKS,
    """
    A block has a part that its kind does not have, or a task lacks one: an operation and an
    output.
    """, language=_TCB)  # fmt: skip
TCB34 = declare(
    "TCB34", "stream", _ORDER,
    """
    A stream is of an engine that the machine does not have, or that has another stream.
    """, language=_TCB)  # fmt: skip
TCB35 = declare(
    "TCB35", "repeat", _ORDER,
    """
    A repeat counts from below 0, has a negative number of iterations, or stands too deep in
    others.
    """, language=_TCB)  # fmt: skip
TCB36 = declare(
    "TCB36", "value", "TCB / Images",
    """
    A value of an image can stand in no text and in no file: a number of more than 64 bits, one
    that is no number, a text that is no Unicode.
    """, language=_TCB)  # fmt: skip
TCB37 = declare(
    "TCB37", "origin-order", _ORDER,
    """
    Origins do not stand in the order of their positions, each once.
    """, language=_TCB)  # fmt: skip
TCB38 = declare(
    "TCB38", "engine", _BLOCKS,
    """
    A task runs on an engine that the machine does not have; or it names one, and stands in the
    stream of an engine.
    """, language=_TCB)  # fmt: skip
