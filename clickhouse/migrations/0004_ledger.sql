-- The load ledger. It lives beside the events, so that any machine can finish what another one began. It is kept for ever,
-- so nothing may have to read all of it: of ten million loads and chunks only what is open is of interest, and what is
-- asked by name.

-- One row for each file of a run of the loader; the latest version of a load_id is its state. A running load
-- writes a new version every few seconds: one that stopped doing so is dead, and others take over its chunks.
-- Sort key: load_id begins with the time of the load, so the history reads in order.
-- cluster: by load_id
CREATE TABLE IF NOT EXISTS loads
(
    load_id String,
    -- A file, the correction of rejected rows, a rebuild of rollups, or files in place of what was loaded before. The last
    -- two exclude all others.
    kind Enum8('events' = 1, 'replay' = 2, 'rebuild' = 3, 'replacement' = 4),
    -- Whether it counts an event_id once: such loads run one after the other.
    dedupe Bool,
    -- Such loads run one after the other, too: of inputs that begin alike (the head of their first chunk), or the replays of
    -- one load. Empty where nothing is excluded.
    lock String,
    file String,
    user String,
    host String,
    pid UInt32,
    started_at DateTime64(3, 'UTC'),
    -- When it took its place in the order of loads, by the clock of the store; the epoch until then.
    turn DateTime64(6, 'UTC'),
    -- The epoch while the load runs.
    finished_at DateTime64(3, 'UTC'),
    -- Unloaded: it was taken back, and its events, and what the ledger knew of them, are gone.
    state Enum8('running' = 1, 'failed' = 2, 'loaded' = 3, 'unloaded' = 4),
    -- Counted now; found already loaded by an earlier run; refused and kept in rejected_rows; left out because their
    -- event_id was present (--dedupe); left out because the condition of the mapping says that they are no events.
    rows UInt64,
    repeated_rows UInt64,
    rejected_rows UInt64,
    duplicate_rows UInt64,
    left_out_rows UInt64,
    bytes UInt64,
    chunks UInt32,
    -- The replay that it made or finished, so that taking it back opens its rejected rows again.
    replay_id String,
    error String,
    version DateTime64(6, 'UTC') DEFAULT now64(6),
    -- Loads that were heard of lately, and those that did not end well. FINAL goes by both.
    INDEX heard_of version TYPE minmax GRANULARITY 1,
    INDEX in_state state TYPE set(4) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
ORDER BY load_id;

-- One row for each chunk ever sent, kept for ever: what the deduplication window of the engine forgets, the
-- ledger still knows. Written before a chunk is sent (in doubt) and again after (loaded), merged by max, so
-- the order in which the two arrive does not matter.
-- Sort key: head is the hash of all that is before the chunk in its input, and of its first line. A loader that stands there
-- looks up which chunks were sent from there, and so finds where an earlier run has cut, also when the input has grown.
-- Names are spread evenly over the key, so that looking up one of them reads a granule: 256 rows, not 8,192, and of each
-- column a block of 8 KiB, not 64. A thousand of ten million were 5.5 million rows, and are 257,000; blocks of 64 KiB took
-- 1.75 times the CPU. Claims that nobody has completed stand out by the index.
-- cluster: by head
CREATE TABLE IF NOT EXISTS load_chunks
(
    head FixedString(32),
    chunk String,
    -- One row for each load that sent it.
    load_id String,
    -- sha256 of the input up to its end, however it is read: a load can tell that the same bytes were loaded through another
    -- mapping, as another chunk.
    content SimpleAggregateFunction(max, String),
    -- The token under which it was sent in one statement with chunks of other loads; empty where it was sent by itself, under
    -- its name.
    batch SimpleAggregateFunction(max, String),
    -- Where it is in its input, after that was unpacked: the line it begins with, from 1 (a record or row where there are no
    -- lines), its first byte, from 0, and its bytes.
    first_line SimpleAggregateFunction(max, UInt64),
    first_byte SimpleAggregateFunction(max, UInt64),
    bytes SimpleAggregateFunction(max, UInt64),
    -- The balance of a chunk: records cut = rows + duplicate_rows + rejected_rows + left_out_rows.
    records SimpleAggregateFunction(max, UInt64),
    rows SimpleAggregateFunction(max, UInt64),
    rejected_rows SimpleAggregateFunction(max, UInt64),
    duplicate_rows SimpleAggregateFunction(max, UInt64),
    left_out_rows SimpleAggregateFunction(max, UInt64),
    sent_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    -- The epoch until the engine has acknowledged the whole chunk.
    loaded_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    INDEX in_doubt loaded_at TYPE minmax GRANULARITY 1,
    -- For those who find a chunk in events and ask which load it is of: 50 of three million are found in 18,000 rows.
    INDEX by_chunk chunk TYPE bloom_filter(0.0001) GRANULARITY 1
)
ENGINE = AggregatingMergeTree
ORDER BY (head, chunk, load_id)
SETTINGS index_granularity = 256, min_compress_block_size = 8192, max_compress_block_size = 16384;

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

-- An insert has one chunk, or some dozens, and a number of fixed size is quicker to group by than their names.
CREATE MATERIALIZED VIEW IF NOT EXISTS chunk_days_view TO chunk_days AS
SELECT any(e.chunk) AS chunk, day, count() AS events, max(e.loaded_at) AS loaded_at
FROM events AS e
GROUP BY sipHash128(e.chunk), day;

-- Chunks that a load began to withdraw where they had arrived, to send them under another name, and the days on which
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

-- Months whose raw events `adtally prune` has folded into sums, or dropped: what was loaded up to pruned_at belongs to no
-- load any more. Written before the first row is folded, so that a prune that is killed errs on the side of refusing.
-- cluster: by month
CREATE TABLE IF NOT EXISTS pruned_months
(
    -- yyyymm
    month UInt32,
    -- Not before the load time of any of these events, whichever server's clock that is from.
    pruned_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY month;

-- What followers (adtally ingest events --follow) have read to its end, so that they need not read it again at each look. It
-- saves reading and nothing else: what counts is in load_chunks. After a load was taken back all of it is read once more.
-- Sort key: a look asks for the names between the first and the last that it has found.
-- cluster: by name
CREATE TABLE IF NOT EXISTS followed_files
(
    -- How columns are read; the same file read in another way is another one.
    reading String,
    -- A path or the address of an object.
    name String,
    -- The ETag of an object; of a file its size, place and times.
    version String,
    -- Empty where an earlier load had all of it.
    load_id String,
    modified_at DateTime64(3, 'UTC'),
    -- When the look began in which it was found, by the clock of the store.
    looked_at DateTime64(6, 'UTC'),
    loaded_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(looked_at)
ORDER BY (reading, name);
