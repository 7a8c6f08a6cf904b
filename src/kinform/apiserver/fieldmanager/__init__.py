"""Ownership of fields: ``metadata.managedFields`` and server-side apply."""
