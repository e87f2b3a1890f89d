-- How far channels have come, as it was when a piece was loaded: see docs/loading.md. It saves walking through all pieces from
-- the first on, and nothing else: load_chunks tells what is loaded from there on.
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
