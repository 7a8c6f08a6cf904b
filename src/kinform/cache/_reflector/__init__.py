"""Parts of `kinform.cache.reflector`: one list, one open watch, checks of arriving objects."""
