"""The client layer: configuration, credentials, transport, requests, discovery."""
