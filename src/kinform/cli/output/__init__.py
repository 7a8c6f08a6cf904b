"""Output of commands: tables, lines, JSON and YAML, JSONPath templates, the live table."""
