"""A tokenizer out of a file: instructions, vocabulary and decoder, as one piece."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.nac.tisa import manifest
from nacre.nac.tisa.bundle import Bundle, broken_as_input_error
from nacre.nac.tisa.decoders import RESOURCE, TokenDecoder, encode_decoder
from nacre.nac.tisa.instructions import Instruction
from nacre.nac.tisa.program import TisaProgram
from nacre.nac.tisa.resources import Vocabulary


@dataclass(frozen=True)
class WrittenTokenizer:
    """What a file says, in the words of TISA."""

    instructions: tuple[Instruction, ...]
    vocabulary: Vocabulary
    decoder: TokenDecoder

    def bundle(self, name: str) -> Bundle:
        """The manifest and its resources; what is written can be run."""
        raw = manifest.write(self.instructions)
        with broken_as_input_error(len(raw), name):
            TisaProgram(manifest.read(raw), self.vocabulary)
        resources = self.vocabulary.resources()
        resources[RESOURCE] = encode_decoder(self.decoder)
        return Bundle(raw, resources)
