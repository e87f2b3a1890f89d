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
SELECT event_id, event_time, advertiser_id, campaign_id, creative_id, publisher_id, ad_unit_id, site_id, device, ad_requests, impressions, referrals, conversions, spend, revenue, confirmed, chunk, loaded_at
FROM incoming WHERE empty(faults);

-- A row keeps the version of its first arrival, so that one which was replayed or dismissed since stays so.
CREATE MATERIALIZED VIEW IF NOT EXISTS rejected_rows_view TO rejected_rows AS
SELECT chunk, line, load_id, file, faults, raw, fields, toDateTime64(0, 6, 'UTC') AS version
FROM incoming WHERE notEmpty(faults);

ALTER TABLE rejected_rows MODIFY SETTING non_replicated_deduplication_window = 10000;

-- A rejected row is open until it is replayed or dismissed.
-- cluster: by chunk
ALTER TABLE rejected_rows ADD COLUMN IF NOT EXISTS dismissed_at DateTime64(3, 'UTC') AFTER replayed_at;

-- Where a chunk is held back until it is known what to do with it: --dedupe, --max-rejects, --dry-run. A chunk is a
-- partition, so that it can be dropped at once; what a killed loader leaves goes after a day.
-- cluster: by event_id
CREATE TABLE IF NOT EXISTS incoming_staging AS incoming
ENGINE = MergeTree
PARTITION BY chunk
ORDER BY (event_id, line);

ALTER TABLE incoming_staging
    ADD COLUMN IF NOT EXISTS day Date MATERIALIZED toDate(event_time, '{timezone}'),
    ADD COLUMN IF NOT EXISTS staged_at DateTime('UTC') DEFAULT now();

-- cluster: by event_id
ALTER TABLE incoming_staging MODIFY TTL staged_at + INTERVAL 1 DAY;

-- The balance of a chunk: records cut = rows + duplicate_rows + rejected_rows.
-- cluster: by head
ALTER TABLE load_chunks
    ADD COLUMN IF NOT EXISTS records SimpleAggregateFunction(max, UInt64) AFTER bytes,
    ADD COLUMN IF NOT EXISTS duplicate_rows SimpleAggregateFunction(max, UInt64) AFTER rejected_rows;

-- cluster: on every node
DROP TABLE IF EXISTS events_check SYNC;

DROP TABLE IF EXISTS events_staging SYNC;

-- cluster: only, on every node
DROP TABLE IF EXISTS events_staging SYNC;
