"""TCB80-TCB92: an image means what its program means. Each finding shows a witness."""

from nacre.base.rules import declare

_PROOF = "TCB / Same meaning"
_TCB = "TCB"

TCB80 = declare(
    "TCB80", "instances-differ", _PROOF,
    """
    An instance of a task has no block, or has several, or a block stands for no task.

    Blocks and tasks are matched by the position of the statement and the iterations around it.
    """, language=_TCB)  # fmt: skip
TCB81 = declare(
    "TCB81", "operation-differs", _PROOF,
    """
    A block does something else than its task: another operation, other attributes, other types of
    its operands, another number or order of their elements, other scales.
    """, language=_TCB)  # fmt: skip
TCB82 = declare(
    "TCB82", "bytes-differ", _PROOF,
    """
    An operand of a block touches other bytes than its task does, reckoned from where the image
    places the buffer. The message has the first iteration in which it does.
    """, language=_TCB)  # fmt: skip
TCB83 = declare(
    "TCB83", "placement-wrong", _PROOF,
    """
    A buffer of the program has no place in the image, lies in another memory or beyond its end,
    shares bytes with another buffer, or does not keep its alignment.
    """, language=_TCB)  # fmt: skip
TCB84 = declare(
    "TCB84", "order-lost", _PROOF,
    """
    Two accesses to the same bytes, at least one of them a write, that the program orders and the
    tags of the image do not: a run may take them the other way round. The message has the two
    instances and the bytes.
    """, language=_TCB)  # fmt: skip
TCB85 = declare(
    "TCB85", "waits-for-ever", _PROOF,
    """
    A block waits for a count that its tag has not reached when every block before it in the order
    of the program is over. Queues keep that order, so the block waits for ever. Or a tag may be
    signalled before it is raised, in an order that is open: the signal is lost then, and whoever
    waits for the count waits for ever.
    """, language=_TCB)  # fmt: skip
TCB86 = declare(
    "TCB86", "order-unproved", _PROOF,
    """
    Two blocks raise one tag in an order that is open, so that a wait for a count of it means no
    particular one of them. Images are judged all the same, by what can run without each of their
    instances; this one is too large for it, or a tag can be signalled before it is raised and
    after, and neither is it proved that nothing goes wrong by that nor found how it does. With
    queues (`queue.depth`) a block must not need what stands behind it in the program either: it may
    hold that up.
    """, language=_TCB)  # fmt: skip
TCB87 = declare(
    "TCB87", "stream-wrong", _PROOF,
    """
    A value is streamed from block to block and never written, and somebody else reads it, or the
    block behind takes other elements than come, or the value has to be in memory: its region has
    `@materialized`, or the host sees its buffer.
    """, language=_TCB)  # fmt: skip
TCB88 = declare(
    "TCB88", "constants-differ", _PROOF,
    """
    A block reads constants that are others than the program's, or decompresses to others, or
    compressed ones that a task writes or the host sees.
    """, language=_TCB)  # fmt: skip
TCB89 = declare(
    "TCB89", "tokens-run-out", _PROOF,
    """
    More tokens may be alive at once than an engine keeps: a block that waits for one holds up its
    queue, and perhaps the block that would release one, for ever.

    A token is alive from the start of its task until that is complete and all that name it have
    started. On ideal hardware, which has one schedule, a run is tried where the count alone is no
    proof.
    """, language=_TCB)  # fmt: skip
TCB90 = declare(
    "TCB90", "machine-differs", _PROOF,
    """
    The machine that an image says it is bound to is another than the device of the program: its
    name, its hash, its engines, units, memories or tokens. So are tags other than the figures of
    the image's own microarchitecture say.

    Which microarchitecture that is, the program does not say: its figures are taken as given.
    """, language=_TCB)  # fmt: skip
TCB91 = declare(
    "TCB91", "port-differs", _PROOF,
    """
    What the host fills or reads is not what the program has: a port is missing, is one too many, or
    has another kind, place, type, shape or scale. Those of a bundle are the model's inputs and
    outputs; of a program they are its buffers in DDR.
    """, language=_TCB)  # fmt: skip
TCB92 = declare(
    "TCB92", "unit-differs", _PROOF,
    """
    A block runs on units on which the device cannot run its task, on another instance than
    `@resource` names, on the wrong part of a CSTL, or on another engine than that of its task.

    An instance beyond the device's count wraps around; where the device lacks the unit, any that
    can run the task will do.
    """, language=_TCB)  # fmt: skip
