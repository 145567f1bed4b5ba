"""ONNX models as modules of Core IR."""
