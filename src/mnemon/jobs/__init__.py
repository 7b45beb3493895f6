"""Jobs: prompts that run on a schedule, the second entrance to a turn beside HTTP. What fires, when, and who is told."""
