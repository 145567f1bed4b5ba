"""How each operation is written in ONNX, one file a group."""
