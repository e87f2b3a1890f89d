-- Lines that are no events, kept as they came, until a corrected version of them is replayed.
-- Sort key: a chunk that is examined again writes the same rows again.
-- Merges: no two chunks have a key in common, so that merging early gains nothing, and it takes 2.8 us a row.
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
    -- A row is open until it is replayed or dismissed; the epoch until then.
    replayed_at DateTime64(3, 'UTC'),
    dismissed_at DateTime64(3, 'UTC'),
    version DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (chunk, line)
SETTINGS non_replicated_deduplication_window = 10000, min_parts_to_merge_at_once = 16;

-- Every record of a chunk comes in here, judged: with no faults it is an event, else a rejected row. Both views fill
-- their tables under the name of the chunk, so that a chunk sent again changes neither.
-- In a cluster an event is stored with its advertiser and a rejected row with its chunk.
-- cluster: by record
CREATE TABLE IF NOT EXISTS incoming
(
    event_id String,
    event_time DateTime64(3, 'UTC'),
    advertiser_id String,
    campaign_id String,
    creative_id String,
    publisher_id String,
    ad_unit_id String,
    site_id String,
    device LowCardinality(String),
    ad_requests UInt64,
    impressions UInt64,
    referrals UInt64,
    conversions UInt64,
    spend Decimal(18, 6),
    revenue Decimal(18, 6),
    confirmed Bool,
    reason String,
    chunk LowCardinality(String),
    loaded_at DateTime64(6, 'UTC'),
    load_id LowCardinality(String),
    file LowCardinality(String),
    -- Line of the file, from 1; in Parquet the row.
    line UInt64,
    -- These three are empty in an event.
    faults Array(Tuple(field String, reason String)),
    raw String,
    fields Map(String, String)
)
ENGINE = Null;

CREATE MATERIALIZED VIEW IF NOT EXISTS events_view TO events AS
SELECT event_id, event_time, advertiser_id, campaign_id, creative_id, publisher_id, ad_unit_id, site_id, device, ad_requests, impressions, referrals, conversions, spend, revenue, confirmed, reason, chunk, loaded_at
FROM incoming WHERE empty(faults);

-- A row keeps the version of its first arrival, so that one which was replayed or dismissed since stays so.
CREATE MATERIALIZED VIEW IF NOT EXISTS rejected_rows_view TO rejected_rows AS
SELECT chunk, line, load_id, file, faults, raw, fields, toDateTime64(0, 6, 'UTC') AS version
FROM incoming WHERE notEmpty(faults);

-- Where a chunk is held back until it is known what to do with it: --dedupe, --max-rejects, --dry-run, and a mapping whose
-- condition may leave out records. And where small chunks are gathered, so that they can be stored in one statement, and
-- again if it was interrupted. Has the columns of `incoming`, and four more. What is stored together is a partition, so
-- that it can be dropped at once; what a killed loader leaves goes after a day.
-- cluster: by event_id
CREATE TABLE IF NOT EXISTS incoming_staging
(
    event_id String,
    event_time DateTime64(3, 'UTC'),
    advertiser_id String,
    campaign_id String,
    creative_id String,
    publisher_id String,
    ad_unit_id String,
    site_id String,
    device LowCardinality(String),
    ad_requests UInt64,
    impressions UInt64,
    referrals UInt64,
    conversions UInt64,
    spend Decimal(18, 6),
    revenue Decimal(18, 6),
    confirmed Bool,
    reason String,
    chunk LowCardinality(String),
    loaded_at DateTime64(6, 'UTC'),
    load_id LowCardinality(String),
    file LowCardinality(String),
    line UInt64,
    faults Array(Tuple(field String, reason String)),
    raw String,
    fields Map(String, String),
    -- The condition of the mapping says that the record is no event.
    left_out Bool,
    -- What is held back together: see load_chunks, or one chunk of one load.
    batch LowCardinality(String),
    -- That of the chunk, to find it in the ledger; empty where a chunk is held back by itself.
    head LowCardinality(String),
    day Date MATERIALIZED toDate(event_time, '{timezone}'),
    staged_at DateTime('UTC') DEFAULT now()
)
ENGINE = MergeTree
PARTITION BY batch
ORDER BY (chunk, line)
TTL staged_at + INTERVAL 1 DAY
-- What is read once and dropped is written in one file and not packed: a sixth less CPU for a statement that holds records back.
SETTINGS min_bytes_for_wide_part = 1000000000000, min_rows_for_wide_part = 1000000000000, default_compression_codec = 'NONE';
