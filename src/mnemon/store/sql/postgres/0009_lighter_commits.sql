-- Nothing is looked up by it, and it bore the time of the last turn: each turn wrote into it.
DROP INDEX lineages_by_key;
