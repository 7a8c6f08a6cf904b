"""Authorization: roles and bindings (RBAC), access reviews, the check against escalation."""
