"""One request, and the bytes of its answer: all of them, or an exception."""

from __future__ import annotations

import http.client
import json
import random
import time
import zlib
from email.utils import parsedate_to_datetime
from typing import Iterator, Mapping, Optional
from urllib.parse import urlsplit

from .errors import AdtallyError, IncompleteAnswer

PIECE_BYTES = 64 * 1024
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 60.0


class Answer:
    """An answer that has begun. Closing it ends the report on the service, too."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response

    def pieces(self) -> Iterator[bytes]:
        """The body, unpacked. Raises IncompleteAnswer behind the last piece when it broke off."""
        response = self._response
        expected = response.getheader("content-length")
        is_packed = response.getheader("content-encoding") == "gzip"
        unpacking = zlib.decompressobj(wbits=31) if is_packed else None
        read = 0
        try:
            while True:
                piece = response.read1(PIECE_BYTES)
                if not piece:
                    break
                read += len(piece)
                yield unpacking.decompress(piece) if unpacking else piece
        except (http.client.HTTPException, ConnectionError, zlib.error) as error:
            raise IncompleteAnswer("the answer broke off") from error
        finally:
            self.close()
        # The standard library takes the end of a connection for the end of the answer.
        if expected is not None and read != int(expected):
            raise IncompleteAnswer(f"the answer has {read} of {expected} bytes")
        if unpacking and read and not unpacking.eof:
            raise IncompleteAnswer("the packed answer has no end")

    def close(self) -> None:
        self._connection.close()


def ask(
    url: str, token: str, body: bytes, headers: Mapping[str, str], timeout: float, tries: int
) -> Answer:
    """Sends the request until it is answered, or refused for good."""
    headers = {**headers, "accept-encoding": "gzip"}
    tried = 0
    while True:
        tried += 1
        try:
            return ask_once(url, token, body, headers, timeout)
        except (AdtallyError, http.client.HTTPException, ConnectionError) as failure:
            if tried >= tries or not is_passing(failure):
                raise
            pause(tried, failure)


def pause(tried: int, failure: Exception) -> None:
    """Waits as long as the service says, or longer after each try; a minute at most."""
    growing = FIRST_PAUSE_SECONDS * 1.5 ** (tried - 1) * random.uniform(1, 1.25)
    asked: Optional[float] = getattr(failure, "retry_after", None)
    time.sleep(min(MAX_PAUSE_SECONDS, growing if asked is None else asked))


def ask_once(url: str, token: str, body: bytes, headers: Mapping[str, str], timeout: float) -> Answer:
    """Sends the request and returns the answer that has begun."""
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ValueError(f"not a URL of HTTP: {url}")
    is_tls = address.scheme == "https"
    connect = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
    connection = connect(address.hostname, address.port, timeout=timeout)
    try:
        path = f"{address.path}?{address.query}" if address.query else address.path
        connection.request("POST", path, body, {**headers, "authorization": f"Bearer {token}"})
        response = connection.getresponse()
        if response.status != 200:
            raise _refusal(response)
        sent = response.getheader("content-type") or "no content-type"
        # A page of a proxy, such as one to sign in; without rows, it would be an empty report.
        if sent.split(";")[0].strip().lower() != headers["accept"]:
            raise AdtallyError(200, {"detail": f"what answered is not adtally: it sent {sent}"})
        return Answer(connection, response)
    except BaseException:
        connection.close()
        raise


def _refusal(response: http.client.HTTPResponse) -> AdtallyError:
    try:
        told = json.loads(response.read())
    except (http.client.HTTPException, OSError, ValueError):
        # A proxy may have written it, or cut it: its status counts nevertheless.
        told = None
    is_problem = (response.getheader("content-type") or "").startswith("application/problem+json")
    problem = told if is_problem and isinstance(told, dict) else {}
    place = response.getheader("location")
    moved = {"detail": f"HTTP status {response.status}: redirects to {place}"} if place else None
    return AdtallyError(response.status, moved or problem, _retry_after(response))


def _retry_after(response: http.client.HTTPResponse) -> Optional[float]:
    after = response.getheader("retry-after") or ""
    if after.isdecimal():
        return float(after)
    try:
        # A date counts from the `Date` of the same answer: our clock may be another.
        given, now = (parsedate_to_datetime(text) for text in (after, response.getheader("date") or ""))
        seconds = (given - now).total_seconds()
    except (TypeError, ValueError):
        return None
    return seconds if seconds >= 0 else None


def is_passing(failure: Exception) -> bool:
    """Whether the same request may succeed in a moment."""
    if not isinstance(failure, AdtallyError):
        return not isinstance(failure, http.client.InvalidURL)
    return failure.status in (408, 429, 502, 503, 504) or failure.code in ("internal_error", "store_unavailable")
