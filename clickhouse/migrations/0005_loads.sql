-- The load ledger. It lives beside the events, so that any machine can finish what another one began.

-- One row for each file of a run of the loader; the latest version of a load_id is its state. A running load
-- writes a new version every few seconds: one that stopped doing so is dead, and others take over its chunks.
-- Sort key: load_id begins with the time of the load, so the history reads in order.
-- cluster: by load_id
CREATE TABLE IF NOT EXISTS loads
(
    load_id String,
    -- A file, the correction of rejected rows, or a rebuild of rollups, which excludes the other two.
    kind Enum8('events' = 1, 'replay' = 2, 'rebuild' = 3),
    -- Whether it counts an event_id once: such loads run one after the other.
    dedupe Bool,
    file String,
    user String,
    host String,
    pid UInt32,
    started_at DateTime64(3, 'UTC'),
    -- When it took its place in the order of loads, by the clock of the store; the epoch until then.
    turn DateTime64(6, 'UTC'),
    -- The epoch while the load runs.
    finished_at DateTime64(3, 'UTC'),
    state Enum8('running' = 1, 'failed' = 2, 'loaded' = 3),
    -- Counted now; found already loaded by an earlier run; refused and kept in rejected_rows; left out
    -- because their event_id was present (--dedupe).
    rows UInt64,
    repeated_rows UInt64,
    rejected_rows UInt64,
    duplicate_rows UInt64,
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
-- cluster: by head
CREATE TABLE IF NOT EXISTS load_chunks
(
    head FixedString(32),
    chunk String,
    -- One row for each load that sent it: the first that is alive sends, others wait for it.
    load_id String,
    bytes SimpleAggregateFunction(max, UInt64),
    rows SimpleAggregateFunction(max, UInt64),
    rejected_rows SimpleAggregateFunction(max, UInt64),
    sent_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    -- The epoch until the engine has acknowledged the whole chunk.
    loaded_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (head, chunk, load_id);

-- What of a chunk arrived in events, by day: answers "did it arrive, when, and which days did it touch?"
-- without a scan of events.
-- cluster: by chunk
CREATE TABLE IF NOT EXISTS chunk_days
(
    chunk String,
    day Date,
    events SimpleAggregateFunction(sum, UInt64),
    loaded_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (chunk, day)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS chunk_days_view TO chunk_days AS
SELECT chunk, day, count() AS events, max(e.loaded_at) AS loaded_at
FROM events AS e
GROUP BY chunk, day;

-- Lines that are no events, kept as they came, until a corrected version of them is replayed.
-- Sort key: a chunk that is examined again writes the same rows again.
-- cluster: by chunk
CREATE TABLE IF NOT EXISTS rejected_rows
(
    chunk String,
    -- Line of the file, from 1; in Parquet the row.
    line UInt64,
    load_id String,
    file String,
    -- Every faulty field and what is wrong with it; the field is empty where the line cannot be read at all.
    faults Array(Tuple(field String, reason String)),
    -- Bytes as they came; they need not be valid UTF-8.
    raw String,
    -- The fields that could be read, as text, to correct them from; then the corrected ones.
    fields Map(String, String),
    -- Rows that are being replayed together; with their fields it makes the replay repeatable.
    replay_id String,
    -- The epoch until it is replayed.
    replayed_at DateTime64(3, 'UTC'),
    version DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (chunk, line);

-- Takes the same statements as events, applies the same constraints and stores nothing: for --dry-run.
-- cluster: on every node
CREATE TABLE IF NOT EXISTS events_check AS events
ENGINE = Null;

-- Where --dedupe compares a chunk with the events of its days before it is counted. A chunk is a partition, so
-- that it can be dropped at once.
-- cluster: by event_id
CREATE TABLE IF NOT EXISTS events_staging AS events
ENGINE = MergeTree
PARTITION BY chunk
ORDER BY event_id;
