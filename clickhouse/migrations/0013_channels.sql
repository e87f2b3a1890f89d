-- How far channels have come: see docs/loading.md. Noted when a chunk is loaded, and again before the next one is, so beyond
-- it a channel has one chunk at most. That one may be taken back without a gap before others.
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
