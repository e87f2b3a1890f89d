-- The load ledger. It lives beside the events, so that any machine can finish what another one began.

-- One row for each file of a run of the loader; the latest version of a load_id is its state.
-- Sort key: load_id begins with the time of the load, so the history reads in order.
CREATE TABLE IF NOT EXISTS loads
(
    load_id String,
    file String,
    host String,
    pid UInt32,
    started_at DateTime64(3, 'UTC'),
    -- The epoch while the load runs.
    finished_at DateTime64(3, 'UTC'),
    state Enum8('running' = 1, 'failed' = 2, 'loaded' = 3),
    -- Counted now, and found already loaded by an earlier run.
    rows UInt64,
    repeated_rows UInt64,
    bytes UInt64,
    chunks UInt32,
    error String,
    version DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY load_id;

-- One row for each chunk ever sent, kept for ever: what the deduplication window of the engine forgets, the
-- ledger still knows. Written before a chunk is sent (in doubt) and again after (loaded), merged by max, so
-- the order in which the two arrive does not matter.
-- Sort key: head is the hash of the chunk's first line. A loader that stands at a line looks up which
-- chunks began with it, and so finds the boundaries of an earlier run whatever its --chunk-bytes was, also
-- in a file that has grown since.
CREATE TABLE IF NOT EXISTS load_chunks
(
    head FixedString(32),
    chunk String,
    load_id SimpleAggregateFunction(anyLast, String),
    bytes SimpleAggregateFunction(max, UInt64),
    rows SimpleAggregateFunction(max, UInt64),
    sent_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    -- The epoch until the engine has acknowledged the whole chunk.
    loaded_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (head, chunk);
