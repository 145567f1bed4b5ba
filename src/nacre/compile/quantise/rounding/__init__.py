"""Which integers weights become: by what their products lose on data."""
