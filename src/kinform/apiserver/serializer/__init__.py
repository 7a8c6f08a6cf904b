"""Bodies of requests and responses: JSON, YAML and protobuf, decoded and encoded."""
