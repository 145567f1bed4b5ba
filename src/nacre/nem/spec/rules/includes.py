"""INC and DVD: included files, and the device that a program is for."""

from nacre.base.rules import declare

_INCLUDE = "Formal Language Definition / Include Semantics"
_DIRECTIVE = "Formal Language Definition / Program Device Directive"

INC01 = declare(
    "INC01",
    "include-cycle",
    f"{_INCLUDE} 3",
    """
    A file includes itself, directly or through others.

    The message gives the chain. Files that are included twice without a cycle are read once.
    """,
    fix="takes the include out where a file includes itself",
)
INC02 = declare(
    "INC02",
    "include-not-found",
    f"{_INCLUDE} 2",
    """
    An included file does not exist or cannot be read.

    The path is taken relative to the folder of the including file. The files that nacre ships
    (`nem_baseline_1.0.nem`, `npm_lite.nem` and so on) are found when no such file stands there.

    Bad (-) and good (+):

        - include "no_such_file.nem"
        + include "nem_baseline_1.0.nem"
    """,
    fix="writes the name that was meant, where it can be one only",
)
INC03 = declare(
    "INC03",
    "included-file-invalid",
    f"{_INCLUDE} 5",
    """
    An included file has errors.

    They are reported there with their own codes; the first of them is the related place.
    """,
)
INC04 = declare(
    "INC04",
    "included-program-ignored",
    f"{_INCLUDE} 5",
    """
    A program in an included file is ignored; only devices and type families are imported.

    This is how includes work; no diagnostic carries this code.
    """,
    behaviour=True,
)
INC05 = declare(
    "INC05",
    "device-defined-twice",
    f"{_INCLUDE} 6",
    """
    Two visible files, or one file twice, define a device of the same name.
    """,
)
INC06 = declare(
    "INC06",
    "family-defined-twice",
    f"{_INCLUDE} 6",
    """
    Two visible files, or one file twice, define a type family of the same name.
    """,
)
INC07 = declare(
    "INC07",
    "include-imports-names-only",
    f"{_INCLUDE} 4",
    """
    An include imports devices and type families, not constants, buffers or text.

    This is how includes work; no diagnostic carries this code. A constant of an included file
    that is used as if it were visible gets CST15.
    """,
    behaviour=True,
)
INC08 = declare(
    "INC08",
    "include-outside-root",
    "nacre: includes stay under a root",
    """
    An include leads out of the include root.

    The root is the nearest folder above the program that holds `.git` or `pyproject.toml`; where
    there is none, the program's own folder and its parent. `--include-root` widens it. Links are
    followed before the path is judged.
    """,
)
INC09 = declare(
    "INC09",
    "too-many-includes",
    "nacre: limits",
    """
    A program includes more files than the limit (1000).
    """,
)
DVD01 = declare(
    "DVD01",
    "unknown-device",
    _DIRECTIVE,
    """
    `device NAME` names a device that no included file defines.

    Bad (-) and good (+):

        + include "npm_lite.nem"
          device npm_lite
          program p:
    """,
    fix=(
        "adds the include of a built-in device; else writes the name that was "
        "meant, where it can be one only"
    ),
)
DVD02 = declare(
    "DVD02",
    "device-file-not-usable",
    _DIRECTIVE,
    """
    The file of `device "file"` does not hold exactly one device that can be a target.

    A device can be a target when it has a topology and no other device of the file extends it.

    Bad (-) and good (+):

        - device "nem_baseline_1.0.nem"
        + device "npm_lite.nem"
          program p:
    """,
)
DVD03 = declare(
    "DVD03",
    "inline-device-checked",
    _DIRECTIVE,
    """
    A device that a program defines inline is checked like one in a file of its own.

    Its mistakes carry the DEV and INH codes; no diagnostic carries this code.
    """,
    behaviour=True,
)
DVD04 = declare(
    "DVD04",
    "device-overridden",
    _DIRECTIVE,
    """
    The device that was asked for by option replaces the one that the program names.
    """,
    severity="info",
)
