"""A source for dlt (https://dlthub.com), which has to be installed.

    import dlt
    from adtally.dlt_source import adtally_source

    pipeline = dlt.pipeline("ads", destination="duckdb", dataset_name="ads")
    pipeline.run(adtally_source("https://reports.example.com", dlt.secrets["adtally_token"]))

Each run fetches the days that changed since the last one, however old, and no others. Rows of a day replace those that
are there of it: `merge` with the day as the merge key deletes and inserts. For each changed day there is also a row that
is only a mark (`removed`, a hard delete), so that a day that has lost all rows loses them in the destination, too.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Sequence

import dlt

from .client import Adtally
from .incremental import changed_rows

EVERY_DAY = "1970-01-01T00:00:00Z"
PAGE_ROWS = 5_000


@dlt.source(name="adtally")
def adtally_source(
    url: str,
    token: str = dlt.secrets.value,
    reports: Sequence[str] = ("campaigns/device_date", "ad_units/device_site_date"),
) -> Any:
    """A table for each report: `campaigns_device_date`. dlt keeps `changed_until` with the rows, or neither."""
    client = Adtally(url, token)
    return [_resource(client, report) for report in reports]


def _resource(client: Adtally, report: str) -> Any:
    @dlt.resource(
        name=report.replace("/", "_"),
        write_disposition={"disposition": "merge", "strategy": "delete-insert"},
        merge_key="start_time",
        columns={
            "start_time": {"data_type": "date"},
            "end_time": {"data_type": "date"},
            "removed": {"data_type": "bool", "hard_delete": True},
        },
    )
    def rows() -> Iterator[List[Any]]:
        state = dlt.current.resource_state()
        changed_until, changed = changed_rows(client, report, state.get("changed_until", EVERY_DAY))
        for part in changed:
            yield [{"start_time": day, "end_time": day, "removed": True} for day in part.days()]
            yield from _pages(part.rows)
        state["changed_until"] = changed_until

    return rows


def _pages(rows: Iterator[Any]) -> Iterator[List[Any]]:
    page: List[Any] = []
    for row in rows:
        page.append(row)
        if len(page) == PAGE_ROWS:
            yield page
            page = []
    if page:
        yield page
