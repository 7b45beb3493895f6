"""Every route, in one list; the ones on the hot path first."""

from __future__ import annotations

from starlette.routing import Route

from mnemon.edge import chat, discovery, sessions
from mnemon.edge.later import Later

# What a chat completion does not need; chat, sessions and health are always at hand.
conversations = Later("mnemon.edge.conversations")
jobs = Later("mnemon.edge.jobs")
memory = Later("mnemon.edge.memory")
responses = Later("mnemon.edge.responses.routes")
runs = Later("mnemon.edge.runs.routes")

ONE = "/api/sessions/{session_id}"
MEMORY = "/v1/memory/{memory_id}"
RUN = "/v1/runs/{run_id}"
JOB = "/api/jobs/{job_id}"
RESPONSE = "/v1/responses/{response_id}"
CONVERSATION = "/v1/conversations/{conversation_id}"
ITEM = CONVERSATION + "/items/{item_id}"


def routes() -> list[Route]:
    return [
        Route("/v1/chat/completions", chat.completions, methods=["POST"]),
        Route("/v1/runs", runs.start, methods=["POST"]),
        Route(RUN, runs.get, methods=["GET"]),
        Route(RUN + "/events", runs.events, methods=["GET"]),
        Route(RUN + "/stop", runs.stop, methods=["POST"]),
        Route(RUN + "/steer", runs.steer, methods=["POST"]),
        Route(RUN + "/approval", runs.approval, methods=["POST"]),
        Route("/v1/responses", responses.create, methods=["POST"]),
        Route("/v1/responses/input_tokens", responses.input_tokens, methods=["POST"]),
        Route(RESPONSE, responses.get, methods=["GET"]),
        Route(RESPONSE, responses.delete, methods=["DELETE"]),
        Route(RESPONSE + "/cancel", responses.cancel, methods=["POST"]),
        Route(RESPONSE + "/input_items", responses.input_items, methods=["GET"]),
        Route("/v1/conversations", conversations.create, methods=["POST"]),
        Route(CONVERSATION, conversations.get, methods=["GET"]),
        Route(CONVERSATION, conversations.update, methods=["POST"]),
        Route(CONVERSATION, conversations.delete, methods=["DELETE"]),
        Route(CONVERSATION + "/items", conversations.list_items, methods=["GET"]),
        Route(CONVERSATION + "/items", conversations.create_items, methods=["POST"]),
        Route(ITEM, conversations.get_item, methods=["GET"]),
        Route(ITEM, conversations.delete_item, methods=["DELETE"]),
        Route("/", discovery.root, methods=["GET"]),
        Route("/health", discovery.health, methods=["GET"]),
        Route("/v1/health", discovery.health, methods=["GET"]),
        Route("/health/detailed", discovery.health_detailed, methods=["GET"]),
        Route("/metrics", discovery.metrics, methods=["GET"]),
        Route("/v1/models", discovery.models, methods=["GET"]),
        Route("/v1/models/{model_id}", discovery.model, methods=["GET"]),
        Route("/v1/capabilities", discovery.capabilities, methods=["GET"]),
        Route("/v1/context/preview", chat.preview, methods=["POST"]),
        Route("/v1/receipts/{receipt_id}", discovery.receipt, methods=["GET"]),
        Route("/v1/memory", memory.index, methods=["GET"]),
        Route("/v1/memory", memory.add, methods=["POST"]),
        Route("/v1/memory/search", memory.search, methods=["GET", "POST"]),
        Route("/v1/memory/timeline", memory.timeline, methods=["GET"]),
        Route("/v1/memory/reversals", memory.reversals, methods=["GET"]),
        Route("/v1/memory/why", memory.why, methods=["GET"]),
        Route("/v1/memory/export", memory.export, methods=["GET"]),
        Route("/v1/memory/import", memory.take_over, methods=["POST"]),
        Route("/v1/memory/delete", memory.delete, methods=["POST"]),
        Route(MEMORY, memory.get, methods=["GET"]),
        Route(MEMORY, memory.update, methods=["PATCH"]),
        Route(MEMORY, memory.delete_one, methods=["DELETE"]),
        Route(MEMORY + "/pin", memory.pin, methods=["POST"]),
        Route(MEMORY + "/unpin", memory.unpin, methods=["POST"]),
        Route(MEMORY + "/reopen", memory.reopen, methods=["POST"]),
        Route("/api/sessions", sessions.index, methods=["GET"]),
        Route("/api/sessions", sessions.create, methods=["POST"]),
        Route(ONE, sessions.get, methods=["GET"]),
        Route(ONE, sessions.update, methods=["PATCH"]),
        Route(ONE, sessions.delete, methods=["DELETE"]),
        Route(ONE + "/messages", sessions.messages, methods=["GET"]),
        Route(ONE + "/fork", sessions.fork, methods=["POST"]),
        Route(ONE + "/chat", sessions.chat, methods=["POST"]),
        Route(ONE + "/chat/stream", sessions.chat_stream, methods=["POST"]),
        Route("/api/jobs", jobs.index, methods=["GET"]),
        Route("/api/jobs", jobs.create, methods=["POST"]),
        Route(JOB, jobs.get, methods=["GET"]),
        Route(JOB, jobs.update, methods=["PATCH"]),
        Route(JOB, jobs.delete, methods=["DELETE"]),
        Route(JOB + "/pause", jobs.pause, methods=["POST"]),
        Route(JOB + "/resume", jobs.resume, methods=["POST"]),
        Route(JOB + "/run", jobs.run, methods=["POST"]),
        Route(JOB + "/runs", jobs.runs, methods=["GET"]),
    ]
