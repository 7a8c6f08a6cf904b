"""Parts of `kinform.cache.shared_informer`: start and stop, waiters, checks of arguments."""
