"""The HTTP edge: parse, one call, render. The only part that knows status codes."""
