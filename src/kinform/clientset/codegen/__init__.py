"""From OpenAPI schemas to modules of typed models. Pure: text in, text out.

`tools.clientset` writes the built-in groups with it, ``kinform gen`` a user's own kinds.
"""
