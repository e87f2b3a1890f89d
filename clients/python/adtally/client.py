"""The client of one service and one account."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional
from urllib.parse import urlencode

from .answer import ask
from .errors import IncompleteAnswer

if TYPE_CHECKING:
    import pandas
    import pyarrow

Row = Dict[str, Any]

#: Columns of text, which pandas would take for numbers where they look so: 00451, 1e5, True.
_TEXTS = (
    "campaign",
    "campaign_id",
    "ad_unit",
    "ad_unit_id",
    "device",
    "creative_headline",
    "creative_id",
    "site",
    "site_id",
)
#: Amounts and ratios. Whole ones are written as counts are, `0`, and would be read as such.
_AMOUNTS = frozenset(
    name + part
    for name in ("spent", "cpa", "cpc", "cpm", "estimated_revenue", "fill_rate", "rtr")
    for part in ("", "_compared", "_change")
)
_ARROW_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


@dataclass(frozen=True)
class Report:
    """The envelope of a report, as /openapi.json describes it. `result` has whatever else the service says of the report."""

    last_update_time: str
    rows: List[Row]
    column_metadata: List[Mapping[str, str]]
    unconfirmed_revenue_dates: List[str]
    result: Mapping[str, Any]


@dataclass(frozen=True)
class ChangedDay:
    day: str
    changed_at: str
    unconfirmed: bool


@dataclass(frozen=True)
class Changes:
    """What changed since a time. If `names_changed_at` is later than that, rows of every day may show other names."""

    changed_until: str
    names_changed_at: Optional[str]
    #: Ascending.
    days: List[ChangedDay]


@dataclass(frozen=True)
class ChangedDays:
    """`changed_until` is to be handed back once the days, ascending, have been fetched."""

    changed_until: str
    days: List[str]


class Adtally:
    """Asks one service for the reports of one account.

    Requests that are refused for the moment (429, 503), or that fail before their answer begins, are sent again, when
    the service says or with growing pauses: `tries` times in all. `timeout` is in seconds, until an answer begins and
    between two pieces of it. Amounts are Decimal, digit for digit, unless `parse_float` says otherwise.

    A report is named as in the path of its export: `campaigns`, `campaigns/device_date`. Fields besides the two dates
    (yyyy-mm-dd, the last one included) are those of the service's /docs: `limit=10`, `filters={"device": ["mobile"]}`.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 310.0,
        tries: int = 4,
        parse_float: Callable[[str], Any] = Decimal,
    ) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._timeout = timeout
        self._tries = tries
        self._parse_float = parse_float

    def rows(self, report: str, start_time: str, end_time: str, **fields: Any) -> Iterator[Row]:
        """Every row, as it arrives. Closing the iterator ends the report.

        Raises AdtallyError when the service refuses, and IncompleteAnswer behind the last row that came when the
        answer breaks off.
        """
        rest = b""
        for piece in self._pieces(report, "application/x-ndjson", start_time, end_time, fields):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield self._parse(line)
        # Every row ends with a line end, the last one, too.
        if rest:
            raise IncompleteAnswer("the answer ends in the middle of a row")

    def report(self, report: str, start_time: str, end_time: str, **fields: Any) -> Report:
        """The whole report with what else its envelope says. Raises as `rows`."""
        return self._report(self._whole(report, "application/json", start_time, end_time, fields))

    def adjustments(self, family: str, start_time: str, end_time: str, **fields: Any) -> Report:
        """What changed in `campaigns` or `ad_units` after months were closed: today minus closed, a row for each day and all
        ids that differ; with `by_load=True` split by `changed_at`, `change`, `load` and `reason`. Raises as `rows`; `month_not_closed` where a month of the range is not closed."""
        body = {**fields, "start_time": start_time, "end_time": end_time}
        return self._report(b"".join(self._post(f"{family}/adjustments", "application/json", body)))

    def reconcile(
        self, family: str, file: bytes, *, content_type: str = "text/csv", **parameters: str
    ) -> Mapping[str, Any]:
        """A report of the other side beside ours: totals, what explains the gap, and rows that differ; their amounts are text.
        Parameters are those of /docs: `tolerance="5"`, `**{"columns.spend": "Cost"}`. Raises as `rows`."""
        path = f"{family}/reconcile?{urlencode(parameters)}"
        return self._result(b"".join(self._send(path, "application/json", content_type, file)))

    def _result(self, text: bytes) -> Any:
        if not text.endswith(b"}}"):
            raise IncompleteAnswer("the answer has no end")
        return self._parse(text)["result"]

    def _report(self, text: bytes) -> Report:
        result = self._result(text)
        return Report(
            last_update_time=result["last_update_time"],
            rows=result["rows"],
            column_metadata=result["column_metadata"],
            unconfirmed_revenue_dates=result["unconfirmed_revenue_dates"],
            result=result,
        )

    def arrow_bytes(self, report: str, start_time: str, end_time: str, **fields: Any) -> bytes:
        """An Arrow IPC stream, for `polars.read_ipc_stream` or DuckDB. Raises as `rows`."""
        stream = self._whole(report, "application/vnd.apache.arrow.stream", start_time, end_time, fields)
        if not stream.endswith(_ARROW_END):
            raise IncompleteAnswer("the Arrow stream has no end")
        return stream

    def arrow(self, report: str, start_time: str, end_time: str, **fields: Any) -> pyarrow.Table:
        """A table of pyarrow, which has to be installed. Raises as `rows`."""
        import pyarrow.ipc

        stream = self.arrow_bytes(report, start_time, end_time, **fields)
        with pyarrow.ipc.open_stream(stream) as reader:
            return reader.read_all()

    def df(self, report: str, start_time: str, end_time: str, **fields: Any) -> pandas.DataFrame:
        """A data frame of pandas, which has to be installed; amounts are doubles there, names and ids text. Raises as `rows`."""
        import pandas

        text = self._whole(report, "text/csv", start_time, end_time, fields)
        if not text.endswith(b"\n"):
            raise IncompleteAnswer("the answer ends in the middle of a row")
        types = {**dict.fromkeys(_TEXTS, str), **dict.fromkeys(_AMOUNTS, float)}
        # A campaign may be called NA.
        return pandas.read_csv(io.BytesIO(text), keep_default_na=False, dtype=types)

    def changes(self, family: str, changed_since: str = "1970-01-01T00:00:00Z") -> Changes:
        """The days whose rows or confirmation changed in the reports of `campaigns` or `ad_units`. Raises as `rows`.

        Hand back `changed_until` next time, and no change is missed.
        """
        answer = b"".join(
            self._post(f"{family}/changes", "application/json", {"changed_since": changed_since})
        )
        result = self._result(answer)
        return Changes(
            changed_until=result["changed_until"],
            names_changed_at=result["names_changed_at"],
            # The service may be newer than this client.
            days=[ChangedDay(**{name: day[name] for name in ChangedDay.__dataclass_fields__}) for day in result["days"]],
        )

    def changed_days(self, family: str, changed_since: str = "1970-01-01T00:00:00Z") -> ChangedDays:
        """The days to fetch again: as `changes`, and every day when names changed, which reports show. Raises as `rows`."""
        changes = self.changes(family, changed_since)
        if changes.names_changed_at and _moment(changes.names_changed_at) > _moment(changed_since):
            every = self.changes(family)
            return ChangedDays(changes.changed_until, [each.day for each in every.days])
        return ChangedDays(changes.changed_until, [each.day for each in changes.days])

    def _whole(
        self, report: str, accept: str, start_time: str, end_time: str, fields: Mapping[str, Any]
    ) -> bytes:
        return b"".join(self._pieces(report, accept, start_time, end_time, fields))

    def _pieces(
        self, report: str, accept: str, start_time: str, end_time: str, fields: Mapping[str, Any]
    ) -> Iterator[bytes]:
        body = {**fields, "start_time": start_time, "end_time": end_time}
        return self._post(report.replace("/", "/breakdowns/", 1), accept, body)

    def _post(self, path: str, accept: str, body: Mapping[str, Any]) -> Iterator[bytes]:
        return self._send(path, accept, "application/json", json.dumps(body).encode())

    def _send(self, path: str, accept: str, content_type: str, body: bytes) -> Iterator[bytes]:
        headers = {"accept": accept, "content-type": content_type}
        return ask(f"{self._url}/v1/{path}", self._token, body, headers, self._timeout, self._tries).pieces()

    def _parse(self, text: bytes) -> Any:
        return json.loads(text, parse_float=self._parse_float, object_hook=self._with_amounts)

    def _with_amounts(self, fields: Row) -> Row:
        for name, value in fields.items():
            if type(value) is int and name in _AMOUNTS:
                fields[name] = self._parse_float(str(value))
        return fields


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
