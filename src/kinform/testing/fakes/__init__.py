"""Fakes of a server for unit tests: objects in memory to list and watch."""
