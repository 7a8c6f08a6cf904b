"""The differential harness: client-go's informer and kinform's play the same scripts."""
