"""Decoders from ONNX: graphs with past and present become steps over a cache that stays."""
