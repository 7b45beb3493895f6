-- What was said to a run while it was under way: a JSON text on each line.
ALTER TABLE works ADD COLUMN steers TEXT;
