"""Operations on stored integers, scales as attributes or as tensors."""
