-- A mapping can have a condition which records are events at all; the others are left out, and counted. The balance of a
-- chunk: records cut = rows + duplicate_rows + rejected_rows + left_out_rows.
-- content: sha256 of the bytes however they are read, so that a load can tell that they were loaded through another
-- mapping, as another chunk; empty of chunks loaded before.
-- cluster: by head
ALTER TABLE load_chunks
    ADD COLUMN IF NOT EXISTS left_out_rows SimpleAggregateFunction(max, UInt64) AFTER duplicate_rows,
    ADD COLUMN IF NOT EXISTS content SimpleAggregateFunction(max, String) AFTER load_id;

-- cluster: by load_id
ALTER TABLE loads ADD COLUMN IF NOT EXISTS left_out_rows UInt64 AFTER duplicate_rows;

-- Chunks of which a condition may leave out records are held back.
-- cluster: by event_id
ALTER TABLE incoming_staging ADD COLUMN IF NOT EXISTS left_out Bool AFTER fields;
