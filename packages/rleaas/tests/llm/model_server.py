"""A real HTTP server that speaks the protocols of OpenAI and Anthropic, as a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass
class Said:
    """What the model says to one request, or how its endpoint fails."""

    text: str = ""
    calls: tuple[tuple[str, object], ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    drips: bool = False
    body: object = None


Answer = Callable[[Json], Said]


class Request(Json):
    """A request as it came: its body, with what both protocols have in the same place."""

    path: str
    headers: Mapping[str, str]

    @property
    def system(self) -> str:
        if "system" in self:
            return str(self["system"])
        return next((one["content"] for one in self["messages"] if one["role"] == "system"), "")

    @property
    def user(self) -> str:
        """The last thing that was said."""
        said = self["messages"][-1]["content"]
        return said if isinstance(said, str) else said[0].get("text", said[0].get("content", ""))


class ModelServer:
    def __init__(self, answer: Callable[[Request], Said]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai(self) -> str:
        return f"{self.root}/v1"

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                request = Request(json.loads(self.rfile.read(length)))
                request.path, request.headers = self.path, dict(self.headers.items())
                server.requests.append(request)
                said = server.answer(request)
                form = _anthropic if self.path.endswith("/messages") else _openai
                body = said.body
                if body is None:
                    body = form(said) if said.status == 200 else {"error": {"message": said.text}}
                data = json.dumps(body).encode()
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if said.drips:  # a byte now and then, so that no read is ever overdue
                    for place in range(len(data)):
                        if server.closing.wait(0.05):
                            return
                        try:
                            self.wfile.write(data[place : place + 1])
                            self.wfile.flush()
                        except OSError:
                            return
                else:
                    self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


@contextmanager
def model_server(answer: Callable[[Request], Said] | Said | str) -> Generator[ModelServer]:
    """A server whose model answers each request so."""
    if isinstance(answer, str):
        answer = Said(answer)
    if isinstance(answer, Said):
        said = answer

        def always(_: Request) -> Said:
            return said

        answer = always
    server = ModelServer(answer)
    try:
        yield server
    finally:
        server.close()


def in_turn(*answers: Said | str) -> Callable[[Request], Said]:
    """One after the other; the last one for ever."""
    left = [Said(one) if isinstance(one, str) else one for one in answers]
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def _openai(said: Said) -> Json:
    message: Json = {"role": "assistant", "content": said.text or None}
    if said.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given),
                },
            }
            for number, (name, given) in enumerate(said.calls)
        ]
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


def _anthropic(said: Said) -> Json:
    blocks: list[Json] = [{"type": "text", "text": said.text}] if said.text else []
    blocks += [
        {"type": "tool_use", "id": f"call_{number}", "name": name, "input": given}
        for number, (name, given) in enumerate(said.calls)
    ]
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": blocks,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 3},
    }
