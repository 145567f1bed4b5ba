"""MEP, the execution plan: its bytecode in the section ORCH, assembler, disassembler, machine."""

from nacre.nac.mep.answers import Prompt
from nacre.nac.mep.assembler import assemble
from nacre.nac.mep.disassembler import disassemble
from nacre.nac.mep.machine import Machine
from nacre.nac.mep.plans import plan_names, shipped_plan
from nacre.nac.mep.work import Model, Tokenizer, Written

__all__ = [
    "Machine",
    "Model",
    "Prompt",
    "Tokenizer",
    "Written",
    "assemble",
    "disassemble",
    "plan_names",
    "shipped_plan",
]
