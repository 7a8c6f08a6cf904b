"""Mutants: mistakes put into kinform on purpose, to see that the simulator finds each of them."""
