"""Sources of a controller's work: informers of a kind, timers, streams and channels."""
