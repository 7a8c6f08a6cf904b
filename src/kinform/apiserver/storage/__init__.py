"""Storage of objects: versions under one revision counter, a data file, a replica that lags."""
