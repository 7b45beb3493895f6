"""What Mnemon costs, beside what the same turn costs without it: `python -m bench` prints the table."""
