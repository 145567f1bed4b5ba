"""ONNX files and nodes as plain values, read with care."""
