"""Authentication: users, their tokens, impersonation, tokens of service accounts."""
