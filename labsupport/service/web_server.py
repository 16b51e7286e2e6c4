"""Uvicorn, stopped in good order: every open stream gets its last event before the connections are closed."""

from __future__ import annotations

import asyncio
import os

import uvicorn
from fastapi import FastAPI

SPARE = 256  # connections beside the streams


class Server(uvicorn.Server):
    """Serves one app made by `create_app`."""

    def __init__(self, app: FastAPI):
        self.conversations = app.state.conversations
        super().__init__(uvicorn.Config(
            app, log_level="warning", timeout_graceful_shutdown=10,
            access_log=False,  # its lines hold conversation ids, and whoever has one can read that conversation
            server_header=False, limit_concurrency=app.state.limits.streams + SPARE,
            # Else anybody on this machine could name any address in X-Forwarded-For and so have any rate.
            proxy_headers=bool(os.environ.get("FORWARDED_ALLOW_IPS")),
        ))  # fmt: skip

    async def shutdown(self, sockets: list | None = None) -> None:
        await asyncio.to_thread(self.conversations.close)
        await super().shutdown(sockets)
