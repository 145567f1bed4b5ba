"""What each operation of ONNX becomes, one file a group."""
