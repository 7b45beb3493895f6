"""`/v1/runs`: turns that are started and not waited for."""
