"""Soak test: informers on a server, through a bad network, for hours or days."""
