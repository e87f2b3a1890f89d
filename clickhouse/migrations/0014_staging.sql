-- An insert whose answer was lost may go on in ClickHouse beside the one that comes in its place: as in the other tables that
-- loads fill, the second is left out by its token. The token holds for a batch, and goes with it.
ALTER TABLE incoming_staging MODIFY SETTING non_replicated_deduplication_window = 10000;
