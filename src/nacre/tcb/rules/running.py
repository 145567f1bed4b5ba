"""TCB50-TCB60: what can go wrong while an image runs."""

from nacre.base.rules import declare

_RUN = "TCB / Machine"
_TCB = "TCB"

TCB50 = declare(
    "TCB50", "image-cannot-be-unrolled", _RUN,
    """
    The repeats of an image cannot be counted out: a term divides by zero or leaves 64 bits, repeats
    of one loop differ from stream to stream, a block names a task that is not there, or there are
    more instances or tags than a machine takes.
    """, language=_TCB)  # fmt: skip
TCB51 = declare(
    "TCB51", "run-is-stuck", _RUN,
    """
    Blocks wait for tags that nobody will raise any more, or for a token that nobody will release.

    The message names the first of them and what they wait for. A binder never makes such an image;
    `nacre tcb verify` finds what is wrong with it.
    """, language=_TCB)  # fmt: skip
TCB52 = declare(
    "TCB52", "block-cannot-run", _RUN,
    """
    There is no primitive of a block's name, it cannot work on these operands, or it takes more
    units than a block can, or one that the machine does not have, or more cycles than are counted.
    """, language=_TCB)  # fmt: skip
TCB53 = declare(
    "TCB53", "outside-memory", _RUN,
    """
    An operand lies outside the memory that it names, or names none of the machine's.
    """, language=_TCB)  # fmt: skip
TCB54 = declare(
    "TCB54", "read-before-write", _RUN,
    """
    A block reads bytes that nothing has written.

    Such bytes are poison: copies carry them along, other blocks report them. The run goes on, and
    the bytes read as 0xFF. So it is with a value that streams from block to block: it is never
    written, and nobody finds it in memory.
    """, severity="warning", language=_TCB)  # fmt: skip
TCB55 = declare(
    "TCB55", "value-fault", _RUN,
    """
    An index points outside its tensor, an integer is divided by zero or raised to a negative power.

    The block writes nothing, and the run stops.
    """, language=_TCB)  # fmt: skip
TCB56 = declare(
    "TCB56", "accumulator-wrapped", _RUN,
    """
    A sum of integer products left the 32 bits of its accumulator and wrapped around. The run goes
    on.
    """, severity="warning", language=_TCB)  # fmt: skip
TCB57 = declare(
    "TCB57", "broken-compression", _RUN,
    """
    The source of a decompressing transfer is not what its mode says: an index beyond its table, or
    too few bytes.
    """, language=_TCB)  # fmt: skip
TCB58 = declare(
    "TCB58", "host-data", _RUN,
    """
    The host names a port or buffer that the image does not have, or gives data of another size.
    """, language=_TCB)  # fmt: skip
TCB59 = declare(
    "TCB59", "chain-without-producer", _RUN,
    """
    A block takes a value that should stream into it, and no block has given one.

    The block before it in its stream is not chained to it.
    """, language=_TCB)  # fmt: skip
TCB60 = declare(
    "TCB60", "input-not-finite", _RUN,
    """
    An input of reals has NaN or infinities, and the image holds integers there, which have neither.

    NaN becomes the zero point, an infinity the end of the range. The run goes on.
    """, severity="warning", language=_TCB)  # fmt: skip
