"""Operations of the domain com.microsoft."""
