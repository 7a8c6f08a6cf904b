"""client-go's ``tools/cache``: list and watch sources, caches and informers."""
