"""Windows that slide over axes: convolutions and poolings."""
