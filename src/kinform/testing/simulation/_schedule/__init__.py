"""Parts of schedules: faults by name, scenes, themes, workloads, and shrinking."""
