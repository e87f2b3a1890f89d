"""Reports of adtally as rows or as an Arrow table, with nothing but the standard library."""

from .client import Adtally, ChangedDay, ChangedDays, Changes, Report
from .errors import AdtallyError, IncompleteAnswer
from .incremental import ChangedRows, changed_rows

__all__ = [
    "Adtally",
    "AdtallyError",
    "ChangedDay",
    "ChangedDays",
    "ChangedRows",
    "Changes",
    "IncompleteAnswer",
    "Report",
    "changed_rows",
]
