"""Other models of NPU time: a script each, which runs in an environment that has the package.

Each reads layers as JSON from its input and writes cycles by layer as the last line of its output.
"""
