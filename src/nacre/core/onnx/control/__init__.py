"""Operations that hold graphs: branches and loops."""
