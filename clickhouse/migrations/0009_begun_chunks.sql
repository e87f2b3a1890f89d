-- Loads that are about to cut a chunk that begins with a certain line. Where two read the same bytes at the same time,
-- the second waits for the first to say where it has cut: else each would cut elsewhere, and both would count.
-- Only of use while a load runs; kept for a while to look at.
-- cluster: by head
CREATE TABLE IF NOT EXISTS begun_chunks
(
    head FixedString(32),
    load_id String,
    -- The epoch at first: whoever has no turn yet is waited for by all.
    turn SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    at SimpleAggregateFunction(max, DateTime('UTC')) DEFAULT now()
)
ENGINE = AggregatingMergeTree
ORDER BY (head, load_id)
TTL at + INTERVAL 30 DAY;
