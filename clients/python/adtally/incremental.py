"""Keeping a copy of a dated report: only the days that changed are fetched again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Iterator, List, Tuple

from .client import Adtally, Row


@dataclass(frozen=True)
class ChangedRows:
    """What a copy has to replace: all its rows of these days, with these rows."""

    first_day: str
    last_day: str
    rows: Iterator[Row]

    def days(self) -> List[str]:
        first, last = date.fromisoformat(self.first_day), date.fromisoformat(self.last_day)
        return [str(first + timedelta(days=n)) for n in range((last - first).days + 1)]


def changed_rows(client: Adtally, report: str, changed_since: str) -> Tuple[str, Iterator[ChangedRows]]:
    """What changed in a report by date (`campaigns/device_date`) since then, and the time to hand back next time.

    Keep that time only when all rows have been stored: a run that breaks off then fetches the same days again. Days
    without rows are among the days: what a copy has of them is to be deleted.
    """
    family, _, breakdown = report.partition("/")
    if "date" not in breakdown.split("_"):
        raise ValueError(f"{report} has no rows by day; its days cannot be replaced")
    changed = client.changed_days(family, changed_since)

    def fetch() -> Iterator[ChangedRows]:
        for first, last in intervals(changed.days):
            yield ChangedRows(first, last, client.rows(report, first, last))

    return changed.changed_until, fetch()


def intervals(days: List[str]) -> Iterator[Tuple[str, str]]:
    """Ascending days as runs of neighbours: one request fetches each."""
    first = last = None
    for text in days:
        day = date.fromisoformat(text)
        if first is None or last is None or day - last != timedelta(days=1):
            if first is not None:
                yield str(first), str(last)
            first = day
        last = day
    if first is not None:
        yield str(first), str(last)
