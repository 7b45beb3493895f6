"""One turn: resolve the session, recall and assemble the prompt, call the model, commit."""
