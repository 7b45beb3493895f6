"""Every route, in one list; the ones on the hot path first."""

from __future__ import annotations

from starlette.routing import Route

from mnemon.edge import chat, discovery, sessions

ONE = "/api/sessions/{session_id}"


def routes() -> list[Route]:
    return [
        Route("/v1/chat/completions", chat.completions, methods=["POST"]),
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
        Route("/api/sessions", sessions.index, methods=["GET"]),
        Route("/api/sessions", sessions.create, methods=["POST"]),
        Route(ONE, sessions.get, methods=["GET"]),
        Route(ONE, sessions.update, methods=["PATCH"]),
        Route(ONE, sessions.delete, methods=["DELETE"]),
        Route(ONE + "/messages", sessions.messages, methods=["GET"]),
        Route(ONE + "/fork", sessions.fork, methods=["POST"]),
        Route(ONE + "/chat", sessions.chat, methods=["POST"]),
        Route(ONE + "/chat/stream", sessions.chat_stream, methods=["POST"]),
    ]
