"""Reports of adtally as rows or as an Arrow table, and events sent to it, with nothing but the standard library."""

from .client import Adtally, ChangedDay, ChangedDays, Changes, Report
from .errors import AdtallyError, IncompleteAnswer
from .incremental import ChangedRows, changed_rows
from .sending import Received, Sender

__all__ = [
    "Adtally",
    "AdtallyError",
    "ChangedDay",
    "ChangedDays",
    "ChangedRows",
    "Changes",
    "IncompleteAnswer",
    "Received",
    "Report",
    "Sender",
    "changed_rows",
]
