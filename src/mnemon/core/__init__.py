"""Records, errors, ids and time: the words every other part speaks. Imports nothing of ours."""
