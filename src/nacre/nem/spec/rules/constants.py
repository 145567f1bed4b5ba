"""CST: constant declarations and integer expressions."""

from nacre.base.rules import declare

_CONST = "Constant Declarations / Semantics"

CST01 = declare(
    "CST01",
    "constant-declared-twice",
    f"{_CONST} 1 (Immutability)",
    """
    Two constants have the same name.

    Bad (-) and good (+):

          const X = 1
        - const X = 2
        + const Y = 2
    """,
)
CST02 = declare(
    "CST02",
    "constant-not-an-expression",
    f"{_CONST} 3 (Constant expressions)",
    """
    A constant's value is a string, list, region or boolean.

    Constants are integers made of literals, earlier constants, `+ - * / mod` and parentheses.
    `let` binds values of any kind.

    Bad (-) and good (+):

        - const X = "a"
        + let X = "a"
    """,
)
CST03 = declare(
    "CST03",
    "constant-used-before-declaration",
    f"{_CONST} 4 (Evaluation order)",
    """
    An expression uses a constant that is declared further down.

    Bad (-) and good (+):

        + const B = 1
          const A = B + 1
        - const B = 1
    """,
)
CST04 = declare(
    "CST04",
    "constant-refers-to-itself",
    f"{_CONST} 4 (Evaluation order)",
    """
    A constant is used in its own value.

    Bad (-) and good (+):

        - const A = A + 1
        + const A = 1
    """,
)
CST05 = declare(
    "CST05",
    "constant-from-non-constant",
    f"{_CONST} 3 (Constant expressions)",
    """
    A constant's value names something that is not a constant: a buffer, `let`, region or token.

    Bad (-) and good (+):

        - buffer B : L2 (size=4)
        - const A = B
        + const A = 4
        + buffer B : L2 (size=A)
    """,
)
CST06 = declare(
    "CST06",
    "division-by-zero",
    f"{_CONST} 5 (Division semantics)",
    """
    An expression divides by zero.

    Bad (-) and good (+):

        - const A = 0
        + const A = 2
          const B = 1 / A
    """,
)
CST07 = declare(
    "CST07",
    "remainder-by-zero",
    f"{_CONST} 5 (Division semantics)",
    """
    An expression takes the remainder of a division by zero.

    Bad (-) and good (+):

        - const X = 10 mod 0
        + const X = 10 mod 3
    """,
)
CST08 = declare(
    "CST08",
    "constant-inside-loop",
    f"{_CONST} 6 (Program scope)",
    """
    A constant is declared inside a loop.

    Constants do not vary by iteration. Declare them before the loop, or bind a value that does
    vary with `let`.

    Bad (-) and good (+):

        + const X = 1
          loop i in [0..1]:
        -     const X = 1
          endloop
    """,
)
CST09 = declare(
    "CST09",
    "constant-collides-with-buffer",
    f"{_CONST} 7 (Name uniqueness)",
    """
    A constant and a buffer have the same name.

    Bad (-) and good (+):

          buffer X : L2 (size=4)
        - const X = 1
        + const Y = 1
    """,
)
CST10 = declare(
    "CST10",
    "constant-collides-with-region",
    f"{_CONST} 7 (Name uniqueness)",
    """
    A constant and a region or `let` have the same name.

    Bad (-) and good (+):

          let X = 4
        - const X = 1
        + const Y = 1
    """,
)
CST11 = declare(
    "CST11",
    "constant-collides-with-token",
    f"{_CONST} 7 (Name uniqueness)",
    """
    A constant and a token have the same name.

    Bad (-) and good (+):

          const X = 1
          buffer A : DDR (size=4)
          buffer B : L2 (size=4)
        - X = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
        + t = transfer.async(dst=region(B, 0, 4), src=region(A, 0, 4))
    """,
)
CST12 = declare(
    "CST12",
    "constant-collides-with-loop-variable",
    f"{_CONST} 7 (Name uniqueness)",
    """
    A constant and a loop variable have the same name.

    Bad (-) and good (+):

        - const i = 1
        + const n = 1
          loop i in [0..3]:
          endloop
    """,
)
CST13 = declare(
    "CST13",
    "division-truncates",
    f"{_CONST} 5 (Division semantics)",
    """
    Division truncates toward zero, and the remainder has the dividend's sign.

    `(3 - 10) / 2` is -3 and `(3 - 10) mod 2` is -1, so that `a` equals `(a / b) * b + a mod b`.
    This is how expressions are evaluated; no diagnostic carries this code.
    """,
    behaviour=True,
)
CST14 = declare(
    "CST14",
    "constant-with-type",
    f"{_CONST} 2 (Integer-valued)",
    """
    A constant has a type annotation.

    Bad (-) and good (+):

        - const X : i32 = 4
        + const X = 4
    """,
    fix="takes the type out",
)
CST15 = declare(
    "CST15",
    "unknown-name-in-expression",
    "Constant Declarations / Usage",
    """
    An expression uses a name that is not declared.

    Bad (-) and good (+):

        + const tile = 64
          buffer B : L2 (size=2 * tile)
    """,
    fix="writes the name that was meant, where it can be one only",
)
CST16 = declare(
    "CST16",
    "integer-out-of-range",
    "nacre: integers have 64 bits",
    """
    An integer literal or the result of an operation does not fit in 64 bits with a sign.

    Bad (-) and good (+):

        - const X = 9223372036854775807 + 1
        + const X = 9223372036854775806 + 1
    """,
)
CST17 = declare(
    "CST17",
    "precedence-matters",
    "Formal Language Definition / Grammar / Expressions",
    """
    An expression mixes `+` or `-` with `*`, `/` or `mod` so that a plain reading from left to
    right gives another value. Reported with `--strict` only.

    The grammar of the language text gives no precedence. nacre follows the convention: `*`, `/`
    and `mod` first. Parentheses say it to every reader.

    Bad (-) and good (+):

        - const X = 1 + 2 * 3
        + const X = 1 + (2 * 3)
    """,
    severity="info",
    strict_only=True,
)
