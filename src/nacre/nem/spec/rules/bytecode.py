"""BYT: programs as bytes, `.nemb` files."""

from nacre.base.rules import declare

_FORMS = "Introduction and Problem Statement (a bytecode representation)"

BYT01 = declare(
    "BYT01",
    "bytecode-damaged",
    _FORMS,
    """
    The bytes of a `.nemb` file are not those that were written.

    A section ends before what it should hold, or goes on behind it; a text is no UTF-8; or the
    checksum at the end is that of other bytes. Nothing of such a file is used. Fetch it again, or
    pack the program again.
    """,
)
BYT02 = declare(
    "BYT02",
    "not-bytecode",
    _FORMS,
    """
    The file does not begin as bytecode does, or is of a version that this reader does not know.

    Files of every version that was ever written stay readable. A newer version needs a newer nacre.
    """,
)
BYT03 = declare(
    "BYT03",
    "bytecode-feature-unknown",
    _FORMS,
    """
    The file has a feature that this reader does not know; the message names it.

    A file says which features one must know to understand it. What is unknown is refused rather
    than skipped: a program without a part of it is another program.
    """,
)
BYT04 = declare(
    "BYT04",
    "bytecode-table",
    _FORMS,
    """
    The table at the start of a `.nemb` file names documents or sections that cannot be.

    Names of documents are paths below the file, each there once; sections have known numbers in
    rising order, and every document has texts and a tree.
    """,
)
BYT05 = declare(
    "BYT05",
    "bytecode-positions",
    _FORMS,
    """
    A position that a `.nemb` file keeps is one that no text has, or its name is that of no file.

    Positions lie in the text that the file was made of. A part of the program stands within what it
    is a part of, beside the other parts; a name takes as many characters as it has. The text's name
    is that of a file, without a folder.
    """,
)
BYT06 = declare(
    "BYT06",
    "bytecode-not-canonical",
    _FORMS,
    """
    The bytes say something in another way than they would be written.

    A document has one encoding: numbers, columns and texts are in their shortest form, texts in the
    order of their first use, nothing is there for nothing. So equal programs are equal files, and a
    file that is read and written again is the same.
    """,
)
BYT07 = declare(
    "BYT07",
    "bytecode-too-large",
    _FORMS,
    """
    A `.nemb` file asks for more than is read: nodes, levels, texts or documents.

    A few bytes can stand for millions of nodes, so counts are compared with a limit before anything
    of that size is made. It grows with the bytes of the document: 32 nodes, comments or lines for
    each, where plans have one. `nacre pack` refuses what it could not read again: write what
    repeats as a `loop`.
    """,
)
BYT08 = declare(
    "BYT08",
    "bytecode-tree",
    _FORMS,
    """
    The tree in a `.nemb` file is one that no text has.

    Bytecode says what a text can say, and nothing else: names are names, operations group as their
    operators do, a task has operands and an opcode that there is, loops end. What text would be
    refused for its syntax is refused here.
    """,
)
BYT09 = declare(
    "BYT09",
    "bytecode-member",
    _FORMS,
    """
    A library has several programs and none was named, or the one that was named is not in it.

    A document in a file is named behind it: `nacre check lib.nemb/conv.nem`.
    """,
)
