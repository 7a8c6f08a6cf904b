"""OpenAPI documents of the served kinds, in versions 2 and 3."""
