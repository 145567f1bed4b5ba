"""BND01-BND04: what keeps a program from being bound to a device."""

from nacre.base.rules import declare

_BINDING = "TCB / Binding"
_TCB = "TCB"

BND01 = declare(
    "BND01", "too-few-tags", _BINDING,
    """
    The order of the program takes more tags than the device has.

    Every task that others wait for signals a tag; tasks that follow one another share one, and so
    do loops. An iteration in flight has tags of its own, so a narrower `@max_in_flight` takes
    fewer. With `--allow-serialise` the binder adds order until the tags are enough, and reports
    where.
    """, language=_TCB)  # fmt: skip
BND02 = declare(
    "BND02", "no-unit", _BINDING,
    """
    No unit of the device can run a task: it has none of the types that the operation runs on.
    """, language=_TCB)  # fmt: skip
BND03 = declare(
    "BND03", "no-room", _BINDING,
    """
    The buffers of a memory do not fit into it, one beside the other, each at its alignment.
    """, language=_TCB)  # fmt: skip
BND04 = declare(
    "BND04", "too-few-tokens", _BINDING,
    """
    More tokens may be alive at once than an engine keeps, so that a run may stop for ever.

    Queues hand out blocks in order: one that waits for a token holds up those behind it, among
    them perhaps the one that would release a token. So for hardware with figures the bound of
    TOK07 has to hold; with `--allow-serialise` the binder narrows windows until it does, and
    reports where. On ideal hardware, which is NEM's timed machine, it is enough that this one
    comes to the end.
    """, language=_TCB)  # fmt: skip
