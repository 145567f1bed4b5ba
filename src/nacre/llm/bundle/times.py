"""What plans of language models take on their device."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from nacre.llm.bundle.speculation import SpeculationCounts


@dataclass(frozen=True)
class LlmTime:
    """What the plans of a bundle take on its device."""

    prefill_cycles: int  # of a chunk of a prompt
    decode_cycles: int  # of a token
    chunk: int
    clock_mhz: float
    verify_cycles: int = 0  # of several tokens at once, the guesses of a draft; 0: no such plan
    batched_cycles: int = 0  # of a token of each of several texts; 0: no such plan
    batch: int = 1  # texts that these are of
    encoder_cycles: int = 0  # of a source; 0: there is no encoder

    @property
    def batched_tokens_per_second(self) -> float:
        """Tokens of all texts together that are written in a second."""
        return self.clock_mhz * 1e6 * self.batch / max(1, self.batched_cycles)

    @property
    def tokens_per_second(self) -> float:
        """Tokens that are written in a second."""
        return self.clock_mhz * 1e6 / self.decode_cycles

    def first_token_ms(self, prompt_tokens: int) -> float:
        """Milliseconds until the first token after a prompt."""
        cycles = self.encoder_cycles + ceil(prompt_tokens / self.chunk) * self.prefill_cycles
        return cycles / self.clock_mhz / 1000


@dataclass(frozen=True)
class SpeculationTime:
    """What a text with guesses took, but for its prompt."""

    counts: SpeculationCounts
    cycles: int  # of both models
    decode_cycles: int  # of a token by the model alone

    @property
    def cycles_per_token(self) -> float:
        """Cycles of both models a token."""
        return self.cycles / max(1, self.counts.tokens)
