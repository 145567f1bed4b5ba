"""TISA, the tokenizer: its programs in the section PROC, their compiler and their runtime."""

from nacre.nac.tisa.bundle import Bundle, join, split
from nacre.nac.tisa.compiler import compile_bundle, compile_tokenizer
from nacre.nac.tisa.listing import disassemble
from nacre.nac.tisa.program import TisaProgram, load

__all__ = [
    "Bundle",
    "TisaProgram",
    "compile_bundle",
    "compile_tokenizer",
    "disassemble",
    "join",
    "load",
    "split",
]
