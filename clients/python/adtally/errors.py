"""What can go wrong; timeouts and broken networks are the OSError of the standard library."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class AdtallyError(Exception):
    """The service refused the request (RFC 9457). Act on `code`, show the text, quote `request_id`."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: Optional[float] = None) -> None:
        super().__init__(str(problem.get("detail") or f"HTTP status {status}"))
        self.status = status
        #: Stable; `unknown` when what answered was not adtally.
        self.code = str(problem.get("code") or "unknown")
        self.field: Optional[str] = problem.get("field")
        #: Of `offset_refused`: the offset that the channel goes on with.
        self.committed: Optional[int] = problem.get("committed")
        #: Of `offset_refused`, where nobody knows whether a body has arrived: so many records have to come in one body.
        self.records: Optional[int] = problem.get("records")
        self.request_id: Optional[str] = problem.get("request_id")
        #: Seconds to wait before another try, if the service said so.
        self.retry_after = retry_after


class IncompleteAnswer(Exception):
    """The answer broke off. What came before is true, but it is not all."""
