"""How a circuit is put together from parts."""
