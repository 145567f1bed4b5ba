"""Language models behind HTTP on this machine, as clients of OpenAI's interface ask for them."""
