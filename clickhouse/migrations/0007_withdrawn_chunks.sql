-- Chunks of which a load began to withdraw what had arrived, to send them under another name, and the days on which
-- something had; 1970-01-01 is the mark alone. Whoever takes such a chunk over cannot rely on what the engine
-- remembers of either name, and finds here which rollups to look at even where no event of a day is left.
-- cluster: by chunk
CREATE TABLE IF NOT EXISTS withdrawn_chunks
(
    chunk String,
    day Date,
    load_id String,
    at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (chunk, day);
