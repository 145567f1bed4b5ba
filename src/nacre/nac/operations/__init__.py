"""Operations that have no form in Core IR: which of them have kernels, ours and those of users."""
