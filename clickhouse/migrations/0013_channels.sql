-- How far channels have come: see docs/loading.md. Noted when a piece is loaded, and before the next one is: so what load_chunks has of a
-- channel beyond this is one piece at most, also where that was taken back.
-- cluster: by channel
CREATE TABLE IF NOT EXISTS channels
(
    -- The sender and its name for it, as a list in JSON.
    channel String,
    -- The number of the record that comes next, from 0.
    position UInt64
)
ENGINE = ReplacingMergeTree(position)
ORDER BY channel;
