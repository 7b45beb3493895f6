"""`/v1/responses`: OpenAI's Responses API in terms of turns. Requests and items are translated, never kept beside the transcript."""
