"""NAM, and what else the resolver of names says: TOK01, TOK02, LOP03."""

from nacre.base.rules import declare

_SCOPE = "Core Program Objects"

NAM01 = declare(
    "NAM01",
    "unknown-name",
    _SCOPE,
    """
    A buffer, region or token is used that is not declared, or only further down.

    Bad (-) and good (+):

        - r = region(Nope, 0, 4)
        + buffer B : L2 (size=4)
        + r = region(B, 0, 4)
    """,
    fix="writes the name that was meant, where it can be one only",
)
NAM02 = declare(
    "NAM02",
    "name-declared-twice",
    _SCOPE,
    """
    A name is declared twice, or again in a loop inside the scope that has it.

    Loops that follow each other may reuse names.

    Bad (-) and good (+):

          buffer B : L2 (size=4)
        - buffer B : L2 (size=8)
        + buffer C : L2 (size=8)
    """,
)
NAM03 = declare(
    "NAM03",
    "wrong-kind-of-name",
    _SCOPE,
    """
    A name is used as something that it is not: a token as an operand, a region in `deps`.

    Bad (-) and good (+):

        + buffer A : DDR (size=4)
          buffer B : L2 (size=4)
        - wait(B)
        + t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
        + wait(t)
    """,
)
NAM04 = declare(
    "NAM04",
    "loop-variable-outside-loop",
    "Loops and Bounded Pipelining",
    """
    A loop variable is used outside its loop.

    Bad (-) and good (+):

          buffer B : L2 (size=64)
          loop i in [0..3]:
        +     let r = region(B, i * 4, 4)
          endloop
        - r = region(B, i * 4, 4)
    """,
)
NAM05 = declare(
    "NAM05",
    "loop-variable-shadowed",
    "Loops and Bounded Pipelining",
    """
    A loop has the same variable as a loop around it.

    Bad (-) and good (+):

          loop i in [0..3]:
        -     loop i in [0..3]:
        +     loop j in [0..3]:
              endloop
          endloop
    """,
)
NAM06 = declare(
    "NAM06",
    "token-outside-loop",
    "Loops and Bounded Pipelining",
    """
    A token that a loop's body produces is used outside that loop.

    `endloop` waits for every iteration, so nothing after the loop needs the token.

    Bad (-) and good (+):

          buffer A : DDR (size=4)
          buffer B : L2 (size=4)
          loop i in [0..3]:
              t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
        +     wait(t)
          endloop
        - wait(t)
    """,
    fix="takes the token out, since `endloop` has waited for it",
)
TOK01 = declare(
    "TOK01",
    "token-used-before-its-task",
    "Core Program Objects / Tasks and Tokens",
    """
    A task or `wait` names a token that only a later task of the same scope produces.

    The task itself is none that it could wait for either.

    Bad (-) and good (+):

          buffer A : DDR (size=4)
          buffer B : L2 (size=4)
        + t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
          wait(t)
        - t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
    """,
)
TOK02 = declare(
    "TOK02",
    "token-bound-twice",
    "Core Program Objects / Tasks and Tokens",
    """
    Two tasks of one scope produce tokens of the same name.

    Bad (-) and good (+):

          buffer A : DDR (size=4)
          buffer B : L2 (size=4)
          t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
        - t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4), deps=[t])
        + u = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4), deps=[t])
    """,
)
LOP03 = declare(
    "LOP03",
    "loop-bound-not-constant",
    "Loops and Bounded Pipelining",
    """
    A loop bound is not known before execution.

    Bounds are made of literals, constants and the variables of loops outside.

    Bad (-) and good (+):

        - buffer B : L2 (size=4)
        + const B = 4
          loop i in [0..B]:
          endloop
    """,
)
