"""Credentials of a client: tokens, client certificates, and plugins that issue them."""
