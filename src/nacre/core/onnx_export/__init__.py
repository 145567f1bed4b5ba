"""Core IR as ONNX models that onnxruntime runs."""
