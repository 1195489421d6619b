"""The application's description of itself: examples that a server gave, and every failure."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

from fastapi import FastAPI

from rleaas.server.failures import Problem

EXAMPLES: Final = Path(__file__).with_name("openapi_examples.json")
_JSON: Final = "application/json"
# What any request with a key may be answered with, whatever it asks for.
_ALWAYS: Final = (403, 429, 503)
_ADDING: Final = 402
_PROBLEMS: Final[dict[int, tuple[str, str, str]]] = {
    400: ("Bad Request", "invalid_json", "the body is not JSON: Expecting value"),
    401: ("Unauthorized", "authentication_failed", "an API key is needed"),
    402: (
        "Payment Required",
        "quota_exceeded",
        "the quota 'jobs' is 4; 4 are used and 1 more were asked for",
    ),
    403: ("Forbidden", "permission_denied", "the API key has not the scope 'write'"),
    404: ("Not Found", "environment_not_found", "Environment not found"),
    408: ("Request Timeout", "invalid_request", "the body did not go on for 30 s"),
    409: (
        "Conflict",
        "idempotency_conflict",
        "the idempotency key 'k1' was used for a different request",
    ),
    413: ("Content Too Large", "body_too_large", "the body is larger than 16777216 bytes"),
    422: ("Unprocessable Content", "invalid_request", "name: Field required, got {}"),
    429: ("Too Many Requests", "rate_limited", "too many requests were sent with this key"),
    501: ("Not Implemented", "unsupported", "this server does not offer it"),
    503: ("Service Unavailable", "server_stopping", "the server is stopping"),
    504: ("Gateway Timeout", "timeout", "the environment did not answer in time"),
}
_BYTES: Final = {"type": "string", "format": "binary"}
_FILES: Final = {
    "GET /api/data-assets/{asset_id}/file": ("application/octet-stream",),
    "GET /api/rollout-reports/{name}": (_JSON, "text/csv", "application/pdf"),
    "GET /api/audit/export": (_JSON, "text/csv"),
}

# JSON has no narrower type than Any.
Json = dict[str, Any]


class Described(FastAPI):
    """An application whose description is complete."""

    def openapi(self) -> Json:
        """The OpenAPI document, made once."""
        if self.openapi_schema is None:
            document = super().openapi()
            recorded = _recorded()
            for path, methods in document["paths"].items():
                for method, said in methods.items():
                    label = f"{method.upper()} {path}"
                    _complete(label, said, recorded.get(label, {}))
        return super().openapi()


@lru_cache
def _recorded() -> dict[str, Json]:
    return cast("dict[str, Json]", json.loads(EXAMPLES.read_text()))


def _complete(label: str, said: Json, example: Json) -> None:
    responses: Json = said["responses"]
    if "401" in responses:
        for status in (*_ALWAYS, *((_ADDING,) if label.startswith(("POST", "PUT")) else ())):
            _document(responses, status)
    if any(one["name"] == "Idempotency-Key" for one in said.get("parameters", [])):
        _document(responses, 409)
    for status in [status for status in responses if int(status) >= 400]:
        _document(responses, int(status))
    if label in _FILES:
        responses["200"]["content"] = {
            media: {"schema": {} if media == _JSON else _BYTES} for media in _FILES[label]
        }
    for parameter in said.get("parameters", []):
        given = {**example.get("path", {}), **example.get("query", {})}
        if parameter["name"] in given:
            parameter["example"] = given[parameter["name"]]
    body = said.get("requestBody", {}).get("content", {}).get(_JSON)
    if body is not None:
        body["example"] = example.get("body", {})
    answered = responses.get(str(example.get("status")), {}).get("content", {}).get(_JSON)
    if answered is not None and "reply" in example:
        answered["example"] = example["reply"]


def _document(responses: Json, status: int) -> None:
    # A problem is JSON also where the answer is a file or text.
    reason, code, detail = _PROBLEMS[status]
    said = responses.setdefault(str(status), {"description": reason})
    example = {"detail": detail, "code": code, "request_id": "req_4f1c2b9a7d3e8a60"}
    schema = {"$ref": f"#/components/schemas/{Problem.__name__}"}
    said["content"] = {_JSON: {"schema": schema, "example": example}}
