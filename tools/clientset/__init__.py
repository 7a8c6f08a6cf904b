"""Writes ``src/kinform/clientset/``: typed models and clients of every built-in kind."""
