"""The patch formats of the API: JSON patch, JSON merge patch and strategic merge patch."""
