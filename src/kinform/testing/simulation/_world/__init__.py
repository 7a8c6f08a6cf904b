"""Parts of a simulated world: network links, restarting processes, the writer, the history."""
