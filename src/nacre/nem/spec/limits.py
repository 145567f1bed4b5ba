"""Limits on what a program may ask of the tools, and what holds where no device is named.

Inputs come from strangers: each limit turns a crash or an endless run into a diagnostic.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nacre.base import source

KIB: Final = 1024
MIB: Final = 1024 * KIB

# A generated program for a large network takes about 5 MB; ten times that still fits.
MAX_SOURCE_BYTES: Final = source.MAX_SOURCE_BYTES

# Parentheses and lists: the parser recurses a few frames per level, and Python stops near 1000.
MAX_NESTING: Final = 100

# A chain of operators becomes a left-deep tree, and every walk over it recurses once per operator.
MAX_EXPRESSION_OPERATORS: Final = 400

# `let` is substitution: without a bound, twenty lines could make a term of a million operations.
MAX_TERM_OPERATIONS: Final = 1000

# NumPy arrays have at most 64 axes, and an iteration grid has one for each loop.
MAX_LOOP_DEPTH: Final = 64

# Includes are transitive, so a small file can name a large tree.
MAX_INCLUDED_FILES: Final = 1000

# Per file. Nobody reads more, and one wrong line in a generated program can repeat for ever.
MAX_DIAGNOSTICS: Final = 1000

# Loops multiply: a few lines can ask for more task instances than memory holds.
MAX_TASK_INSTANCES: Final = 5_000_000

# A check that asks the timed machine about tokens times at most so many instances: seconds.
MAX_VERDICT_INSTANCES: Final = 200_000

# Figures of devices. Every engine and unit is a place in the machine's tables: more than these is
# a slip of the pen, and would take memory and time for nothing.
MAX_ENGINES: Final = 1024
MAX_UNITS: Final = 1024  # of one type: on an engine, or on the device
MAX_UNIT_INSTANCES: Final = 1 << 16  # of one type on all engines together

# Of any other figure, bytes, rates and latencies: sums over a run of such stay within 64 bits.
MAX_FIGURE: Final = (1 << 40) - 1

# The language text names no literal; both spellings are in use.
SPEC_VERSIONS: Final = ("NEM-1.0", "1.0")

# Without a device: one engine of the common size, and memories as the interpreter text gives them.
DEFAULT_ENGINES: Final = 1
DEFAULT_ENGINE_UNITS: Final[Mapping[str, int]] = MappingProxyType(
    {"NMU": 1, "CSTL": 2, "DMA": 2, "VPU": 1, "SEQ": 1}
)
DEFAULT_DEVICE_UNITS: Final[Mapping[str, int]] = MappingProxyType({"sDMA": 1, "WDM": 0})
DEFAULT_L1_BYTES: Final = 1 * MIB  # per engine
DEFAULT_L2_BYTES: Final = 4 * MIB
DEFAULT_DDR_BYTES: Final = 256 * MIB  # also with a device: a topology says nothing about DDR

# Of bytecode. A few bytes can stand for many nodes, so these are counted before anything is made:
# ten times a large program, which has some 650,000 nodes.
MAX_BYTECODE_NODES: Final = 8_000_000
# Nodes, lines or comments for each byte of a document: plans have up to 1.1 nodes, and work stays
# in proportion to the file.
MAX_BYTECODE_NODES_PER_BYTE: Final = 32
# A file of any size has so many, for short programs that say one thing over and over.
MIN_BYTECODE_NODES: Final = 1 << 16
# Of text for each node that a file may have: in plans it is 8.
MAX_BYTECODE_CHARACTERS_PER_NODE: Final = 16
MAX_BYTECODE_DEPTH: Final = 1000  # of nodes in nodes: operators and nesting of one statement
MAX_BYTECODE_TEXT: Final = MAX_SOURCE_BYTES  # bytes, of one list of texts
MAX_BYTECODE_DOCUMENTS: Final = MAX_INCLUDED_FILES
