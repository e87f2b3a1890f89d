"""Sends events to `adtally receive`, each body once."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Optional, Union
from urllib.parse import quote

from .answer import ask_once, is_passing, pause
from .errors import AdtallyError, IncompleteAnswer

NDJSON = "application/x-ndjson"


@dataclass(frozen=True)
class Received:
    """What a body has become. `duplicates` counted before; `reasons` tell of the first `rejected` records.

    `replaced_by` is the load that has replaced all events of a body that came before, else None; `committed` is the offset that a
    channel goes on with.
    """

    load: str
    accepted: int
    rejected: int
    duplicates: int
    reasons: List[str]
    visible_at: str
    replaced_by: Optional[str] = None
    committed: Optional[int] = None


class Sender:
    """Sends events to one service with a token of `adtally token create --for ingest NAME`.

    A body counts once, however often it is sent: so it is sent again after whatever may pass, `tries` times in all, with
    growing pauses. When `send` raises, keep the body and send the same bytes later.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 310.0, tries: int = 8) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._timeout = timeout
        self._tries = tries

    def send(
        self,
        events: Union[bytes, bytearray, memoryview, Iterable[Mapping[str, Any]]],
        *,
        content_type: str = NDJSON,
        key: Optional[str] = None,
        channel: Optional[str] = None,
        offset: Optional[int] = None,
        mapping: Optional[str] = None,
    ) -> Received:
        """Sends records, or bytes of a content type, and returns when every report shows them.

        Equal bytes count once; with `key`, once under each key. With `channel` the records are those of a stream from number
        `offset` on, and what of them came before is left out. Amounts are best given as str or int. Raises AdtallyError
        when the service refuses, TypeError for an event that is no Mapping or has a value of bytes.
        """
        body = bytes(events) if isinstance(events, (bytes, bytearray, memoryview)) else b"".join(_line(event) for event in events)
        headers = {"content-type": content_type, "accept": "application/json"}
        if key is not None:
            headers["idempotency-key"] = key
        if channel is not None:
            headers["channel"] = channel
        if offset is not None:
            headers["offset"] = str(offset)
        query = "" if mapping is None else f"?mapping={quote(mapping, safe='')}"
        url = f"{self._url}/v1/events{query}"
        tried = 0
        while True:
            tried += 1
            try:
                answer = ask_once(url, self._token, body, headers, self._timeout)
                return _received(b"".join(answer.pieces()))
            except (AdtallyError, IncompleteAnswer, http.client.HTTPException, OSError) as failure:
                if tried >= self._tries or not is_passing(failure):
                    raise
                pause(tried, failure)


def _received(text: bytes) -> Received:
    try:
        told = json.loads(text)
        # The service may be newer than this client.
        return Received(**{name: told[name] for name in Received.__dataclass_fields__ if name in told})
    except (ValueError, TypeError) as error:
        raise AdtallyError(200, {"detail": "the answer is not one of adtally"}) from error


def _line(event: Mapping[str, Any]) -> bytes:
    # Each character of a text, or each name of a field, would be a record, and rejected.
    if not isinstance(event, Mapping):
        raise TypeError(f"an event is a dict, not {type(event).__name__}: send a list of events, or bytes")
    return json.dumps(dict(event), default=_text, ensure_ascii=False).encode() + b"\n"


def _text(value: Any) -> str:
    # The id would be "b'c1'", and would count.
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"a value of an event is {type(value).__name__}: decode it")
    return str(value)
