"""Create, update and delete: everything between a decoded body and the storage."""
