"""The HTTP side of a chat endpoint: one request, its streamed chunks, retries, and errors a person can act on.

The connection lives on an event loop in a thread of its own, so that waiting can be broken off: every quarter of a
second without news the iterator gives None, and closing it then closes the connection, on which the server can stop.
The key is sent to the server and shown nowhere, in no error and no `repr`.
"""

from __future__ import annotations

import asyncio
import codecs
import io
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import httpx

from labsupport.pipeline import LabError

PULSE = 0.25  # seconds without news after which the iterator gives None
_RETRY_STATUS = {408, 425, 429, 500, 502, 503, 504}
_LONGEST_WAIT = 30.0  # seconds, whatever a Retry-After header says
_LONGEST_REPLY = 1_000_000  # characters of one streamed reply, its JSON wrapping included
_END = object()


class ChatClient:
    """An OpenAI-compatible server. `timeout` is the longest silence, `deadline` the longest reply, both in seconds."""

    def __init__(
        self, url: str, key: str = "", *, timeout: float = 120.0, deadline: float = 900.0, retries: int = 3,
        backoff: float = 1.0,
    ) -> None:
        try:
            parsed = httpx.URL(url.rstrip("/"))
        except (httpx.InvalidURL, TypeError):
            parsed = httpx.URL("")
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise LabError("The endpoint's URL must look like http://127.0.0.1:11434/v1; set it again.")
        if not key.isascii() or any(not char.isprintable() for char in key):
            raise LabError("The endpoint's key must be printable ASCII on one line; set it again.")
        self._url, self._key = parsed, key
        self._completions = parsed.copy_with(path=parsed.path.rstrip("/") + "/chat/completions", fragment=None)
        query, as_sent = parsed.params, parsed.query.decode("ascii", "replace")
        long = {text for text in (as_sent, *query.values()) if len(text) > 5}  # an api-version=1 is no secret
        password = parsed.userinfo.decode("ascii", "replace").partition(":")[2]  # as sent, so percent-encoded
        self._secrets = sorted({key, password, parsed.password, *long} - {""}, key=len, reverse=True)
        self.timeout, self.deadline, self.retries, self.backoff = timeout, deadline, retries, backoff
        self._refused = 0  # how many of the reply formats this server has refused so far

    @property
    def shown(self) -> str:
        """The URL as errors show it: without user name, password, query and key."""
        return self._hide(str(self._url.copy_with(userinfo=b"", query=None, fragment=None)))

    def __repr__(self) -> str:
        return f"ChatClient({self.shown!r}, key={'set' if self._key else 'none'})"

    def chat(self, body: dict[str, Any], formats: list[dict[str, Any] | None]) -> Iterator[dict[str, Any] | None]:
        """The chunks of the reply to `body`, None while there is no news. Raises LabError.

        `formats` are values of response_format, strictest first; what this server refuses is not tried again.
        """
        with _own_loop() as loop:
            events = self._events(body, formats)
            try:
                while True:
                    future = asyncio.run_coroutine_threadsafe(anext(events, _END), loop)
                    while not future.done():
                        try:
                            future.exception(PULSE)
                        except TimeoutError:
                            try:
                                yield None
                            except GeneratorExit:
                                future.cancel()
                                raise
                    if (event := future.result()) is _END:
                        return
                    yield event
            finally:
                asyncio.run_coroutine_threadsafe(_closed(events), loop).result()

    async def _events(self, body: dict[str, Any], formats: list) -> AsyncIterator[dict[str, Any]]:
        limits = httpx.Timeout(self.timeout, connect=min(10.0, self.timeout))
        on_this_machine = self._url.host in ("localhost", "127.0.0.1", "::1")  # a proxy could not reach it
        async with httpx.AsyncClient(timeout=limits, trust_env=not on_this_machine) as client:
            try:
                response = await self._opened(client, body, formats)
                try:
                    async with aclosing(self._chunks(response)) as chunks:
                        async for chunk in chunks:
                            yield chunk
                finally:
                    await response.aclose()
            except httpx.TimeoutException:
                raise LabError(f"The endpoint {self.shown} was silent for {self.timeout:g} seconds; ask again, "
                               "use a smaller model or a longer timeout.") from None

    async def _opened(self, client: httpx.AsyncClient, body: dict[str, Any], formats: list) -> httpx.Response:
        """A response of status 200, after the retries it took."""
        tries = 0
        while True:
            form = formats[min(self._refused, len(formats) - 1)]
            content = {**body, "response_format": form} if form else body
            headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            request = client.build_request("POST", self._completions, json=content, headers=headers)
            wait = self.backoff * 2**tries
            try:
                response = await client.send(request, stream=True)
            except httpx.TimeoutException:
                raise
            except httpx.HTTPError as error:
                reason = f"cannot be reached ({type(error).__name__})"
            else:
                if response.status_code == 200:
                    return response
                said = await self._said(response)
                if response.status_code in (400, 415, 422, 501) and self._refused < len(formats) - 1:
                    self._refused += 1
                    continue
                if response.status_code not in _RETRY_STATUS:
                    raise LabError(f"The endpoint {self.shown} refused the request with status {response.status_code}: "
                                   f"{said!r}; check its URL, the model's name and the key.")
                reason = f"answered with status {response.status_code}"
                after = response.headers.get("retry-after", "")
                wait = float(after) if after.isdigit() else wait
            if tries >= self.retries:
                raise LabError(f"The endpoint {self.shown} {reason}, {tries + 1} time(s) in a row; "
                               "check its URL and whether the server runs.")
            tries += 1
            await asyncio.sleep(min(wait, _LONGEST_WAIT))

    async def _said(self, response: httpx.Response) -> str:
        """The beginning of an error's text, so that a person sees the server's own reason."""
        try:
            return self._shorten((await response.aread()).decode("utf-8", "replace"), 200)
        except httpx.HTTPError:
            return ""
        finally:
            await response.aclose()

    async def _chunks(self, response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
        """What comes until [DONE], itself given as {"done": True}. A server that does not stream gives one chunk.

        A connection that breaks off just ends: who reads the chunks knows whether the reply was complete.
        """
        try:
            if "text/event-stream" not in response.headers.get("content-type", ""):
                yield self._read((await response.aread()).decode("utf-8", "replace"))
                return
            async with aclosing(self._lines(response)) as lines:
                async for line in lines:
                    data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
                    if data == "[DONE]":
                        yield {"done": True}
                        return
                    if data:
                        yield self._read(data)
        except httpx.TimeoutException:
            raise
        except httpx.HTTPError:
            return

    async def _lines(self, response: httpx.Response) -> AsyncIterator[str]:
        """Lines as server-sent events have them: httpx would also split at U+0085, U+2028 and U+2029 inside JSON."""
        until, size, rest = time.monotonic() + self.deadline, 0, ""
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                text = decoder.decode(piece)
                size += len(text)
                if time.monotonic() > until or size > _LONGEST_REPLY:
                    raise LabError(f"The endpoint {self.shown} goes on and on: more than {self.deadline:g} seconds "
                                   f"or {_LONGEST_REPLY:,} characters for one reply; use another model.")
                *lines, rest = (rest + text).split("\n")
                for line in lines:
                    yield line
        yield rest + decoder.decode(b"", final=True)

    def _read(self, text: str) -> dict[str, Any]:
        try:
            chunk = json.loads(text)
        except (ValueError, RecursionError):
            chunk = None
        if not isinstance(chunk, dict) or chunk.get("error"):
            raise LabError(f"The endpoint {self.shown} sent {self._shorten(text, 80)!r}, which is no chat reply; "
                           "check its URL and its log.")
        return chunk

    def _shorten(self, text: str, length: int) -> str:
        return " ".join(self._hide(text).split())[:length]

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


@contextmanager
def _own_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread: notebooks and servers have one running in theirs already."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="chat endpoint", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _closed(events: Any) -> None:
    while True:
        try:
            return await events.aclose()
        except RuntimeError:  # a cancelled step is still on its way out
            await asyncio.sleep(0.01)
