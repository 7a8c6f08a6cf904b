"""The kinds that the server serves, and what their schemas say about the values of fields."""
