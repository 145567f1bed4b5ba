"""RUN and INI02: what can go wrong while a program runs, and with what its host gives it."""

from nacre.base.rules import declare

_MEMORY = "Abstract Machine Model / Memory Levels"
_HOST = "Interpreter / DDR Data Management"
_COMPUTE = "Interpreter / Compute Function Integration"
_ORDER = "Interpreter / Execution Control"

INI02 = declare(
    "INI02",
    "read-before-write",
    _MEMORY,
    """
    A task or the host reads bytes that nothing has written when it reads them.

    Such bytes are poison: transfers and stores carry them along, compute tasks and host reads
    report them. The run goes on, the bytes read as 0xFF (NaN in every float type). The option
    `uninitialized="zero"` makes memory start as zeros instead.

    Bad run:

        buffer A : L2 (size=64)
        buffer B : L1 (size=64)
        t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
        u = relu.sync
            in region(B, 0, 64) elem=i8, shape=[64], layout=C
            out region(B, 0, 64) elem=i8, shape=[64], layout=C
    """,
    severity="warning",
)
RUN01 = declare(
    "RUN01",
    "index-out-of-range",
    "Opcode Signatures / gather",
    """
    An index points outside the tensor that it picks from.

    `gather` takes indices from 0 to the size of its axis less 1. The task writes nothing, and the
    run stops.

    Bad run:

        buffer X : L1 (size=4)
        buffer I : L1 (size=1)
        buffer Y : L1 (size=1)
        a = clamp.sync
            in region(X, 0, 4) elem=i8, shape=[4], layout=C
            out region(X, 0, 4) elem=i8, shape=[4], layout=C
            min_val=9.0 max_val=9.0
        b = relu.sync
            in region(X, 0, 1) elem=i8, shape=[1], layout=C
            out region(I, 0, 1) elem=i8, shape=[1], layout=C
        c = gather.sync
            in region(X, 0, 4) elem=i8, shape=[4], layout=C,
               region(I, 0, 1) elem=i8, shape=[1], layout=C
            out region(Y, 0, 1) elem=i8, shape=[1], layout=C
            axis=0
    """,
)
RUN02 = declare(
    "RUN02",
    "integer-division-by-zero",
    "Opcode Signatures / div",
    """
    An integer is divided by zero, or raised to a negative power.

    Floats follow IEEE 754 and give infinities or NaN; integers have none. The message names the
    first such element. The task writes nothing, and the run stops.

    Bad run:

        buffer X : L1 (size=4)
        buffer Y : L1 (size=4)
        a = sub.sync
            in region(X, 0, 4) elem=i8, shape=[4], layout=C,
               region(X, 0, 4) elem=i8, shape=[4], layout=C
            out region(X, 0, 4) elem=i8, shape=[4], layout=C
        b = div.sync
            in region(X, 0, 4) elem=i8, shape=[4], layout=C,
               region(X, 0, 4) elem=i8, shape=[4], layout=C
            out region(Y, 0, 4) elem=i8, shape=[4], layout=C
    """,
)
RUN03 = declare(
    "RUN03",
    "accumulator-wrapped",
    "Type Families / accum",
    """
    A sum of integer products left the 32 bits of its accumulator and wrapped around.

    The result is what a device with 32-bit accumulators gives, and almost never what the program
    means. Smaller tiles along the reduction, or a smaller bias, keep sums within range.
    """,
    severity="warning",
)
RUN04 = declare(
    "RUN04",
    "backend-failed",
    _COMPUTE,
    """
    A compute backend cannot run a task, raised an exception, or gave an array of the wrong shape.

    The task writes nothing, and the run stops. (A `compute` task whose `op` no backend knows does
    not start at all: that is SIG22. Operations of Core IR on shapes that they cannot work on are
    found by a check: SIG26.)
    """,
)
RUN05 = declare(
    "RUN05",
    "host-access",
    _HOST,
    """
    The host names a buffer, region, token, task or place that does not exist, or gives data that
    does not fit.

    An array given to a buffer must fill it exactly, whatever its type; `BUF@OFFSET` fills a part.
    """,
)
RUN06 = declare(
    "RUN06",
    "memory-of-the-host-too-small",
    _HOST,
    """
    A modelled memory, or the work on it, takes more than the memory of the machine that nacre
    runs on.

    A memory that is too large is found before anything is allocated. A task that runs out of
    memory stops the run; the message says what it needed.
    """,
)
RUN07 = declare(
    "RUN07",
    "race-met-while-running",
    "Core Program Objects / Dependencies and Hazards",
    """
    Two tasks touched the same bytes, at least one writing, and nothing made the machine wait.

    The run looks for this when it is asked to (`detect_races`). It follows what the machine
    really waited for, byte by byte, and so is a second opinion on what `nacre check` proves.
    """,
)
RUN08 = declare(
    "RUN08",
    "order-not-legal",
    _ORDER,
    """
    A recorded order does not belong to the program, or breaks what orders its tasks.

    An order that is replayed names every task instance once, each after everything that it waits
    for.
    """,
)
RUN09 = declare(
    "RUN09",
    "no-such-backend",
    _COMPUTE,
    """
    A compute backend is not installed, not registered, or not fit for the program.

    A task under `@deterministic` needs a backend that declares itself deterministic.
    """,
)
RUN10 = declare(
    "RUN10",
    "deadlock",
    "Abstract Machine Model / Tokens",
    """
    A timed run is stuck: every token of a sequencer is taken, and none of them will come free.

    A token is taken when its task starts and comes free when the task is complete and every task
    or wait that names it has started. Those may themselves need a token first. The message names
    the tasks that wait.
    """,
)
RUN12 = declare(
    "RUN12",
    "allowed-error-stops-the-run",
    _ORDER,
    """
    Errors of the program were allowed through, and leave something that no machine could carry out.

    Allowing an error (`--allow CODE`, `allow=[...]`) runs the program in spite of it. Where its
    meaning is lost (a buffer that lies in no memory, bytes outside their buffer, a value that
    stands for nothing), the run stops there, before the task touches anything.
    """,
)
RUN11 = declare(
    "RUN11",
    "timing-profile",
    "Interpreter / Timed Mode",
    """
    A timing profile, or a change of a device's figures, names a unit or figure that does not
    exist or gives a value that cannot be meant.

    Throughputs and bandwidths are positive integers; latencies may be 0. `nacre devices NAME
    --timing` lists every figure.
    """,
)
RUN13 = declare(
    "RUN13",
    "broken-compression",
    "Abstract Machine Model / Device-Level Execution Units",
    """
    The source of a transfer that decompresses does not hold compressed elements.

    A mask keeps more elements than follow it, or has bits beyond the elements of the region. The
    task writes nothing, and the run stops.

    Bad run:

        include "npm_pro.nem"
        device npm_pro
        buffer X : L1[0] (size=8)
        buffer Y : L2 (size=2)
        a = clamp.sync
            in region(X, 0, 2) elem=i8, shape=[2], layout=C
            out region(X, 0, 2) elem=i8, shape=[2], layout=C
            min_val=9.0 max_val=9.0
        b = store.sync(dst=region(Y, 0, 2), src=region(X, 0, 2))
        c = transfer.sync(
            dst=region(X, 4, 4),
            src=region(Y, 0, 2) elem=i8, shape=[4], layout=C, compressed=sparse
        )
    """,
)
