"""Access of commands to a cluster: which one, which resources, their informers and sources."""
