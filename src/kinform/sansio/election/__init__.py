"""Leader election on Leases as a state machine: `step` decides, `kinform.runtime` performs."""
