"""Models: the port, the upstream HTTP client, the built-in model and the scripted double."""
