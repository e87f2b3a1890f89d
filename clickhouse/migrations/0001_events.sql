-- In a cluster every numbered file makes the same tables and views on every node. Before each table stands how it
-- lies there: `by …` in the local database, with a Distributed table of its name that spreads the rows (see
-- clickhouse/cluster/sharding-key.ts), or `on every node` whole. `only` exists in clusters alone. Views lie with their
-- tables. What stands in braces is filled in from the table `settings` (clickhouse/settings.ts), which is there first.

-- Accounts that do not lie on the one shard that the hash of their id says, see docs/scaling.md.
-- cluster: only, on every node
CREATE TABLE IF NOT EXISTS placements
(
    account_id String,
    -- Where its events go, by number in the cluster, from 1; by campaign or ad unit if there are several.
    shards Array(UInt16),
    -- Reports ask all shards, because what was loaded before the placement may lie elsewhere.
    read_all Bool,
    version DateTime64(6, 'UTC') DEFAULT now64(6),
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id),
    CONSTRAINT shards CHECK notEmpty(shards) AND NOT has(shards, 0)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY account_id;

-- Part of the sharding keys, so it never changes by itself: adtally reloads it, while nothing is loaded.
-- cluster: only, on every node
CREATE OR REPLACE DICTIONARY placement (account_id String, shards Array(UInt16))
PRIMARY KEY account_id
SOURCE(CLICKHOUSE(
    USER '{user}' PASSWORD '{password}' DB '{database}'
    QUERY 'SELECT account_id, arrayMap(shard -> toUInt16(shard - 1), shards) FROM {database}.placements FINAL'
))
LAYOUT(COMPLEX_KEY_HASHED())
LIFETIME(0);

-- Raw events, one row for each record that is one. An event is what it adds: four counts and two amounts as columns, so
-- that a view is a plain sum, and one record may carry several counts, as nearly every export has them. Everything else
-- can be recomputed from this table, until `adtally prune` has folded it.
--
-- Sort key: verify and rebuild read whole days; within a day the lines of an advertiser lie together and
-- compress. Sorting by the publisher too would cost a tenth of the CPU of a load (2 M lines: 5.3 s, not 4.8 s).
-- Partitions by month: a month is the unit of retention and of a rebuild.
-- ZSTD: 10 million generated events take 18.6 bytes each, where LZ4 took 34.2; the CPU of a load did not differ beyond the
-- noise (12.7 to 14.1 us an event of NDJSON with LZ4, 11.4 to 11.5 with ZSTD), that of an INSERT SELECT by a fifth at most.
-- The deduplication window remembers the last 10,000 parts by the name of their chunk, so that a chunk
-- sent twice is stored once; the load ledger remembers for ever.
--
-- Counts and amounts are of 128 bits, so that nothing that is loaded can make a sum wrap. An event has counts up to
-- 10^15, and 18,447 of the greatest wrapped a sum of 64 bits; one of 128 bits holds those of 10^23 events. The sum of a
-- column is as wide as the column, so these are the types of the rollups. Against 64 bits an INSERT takes 2.8 % more CPU
-- (median of 60, 60,000 events each; 2.2 % of it for the rollups alone), on disk the counts and amounts make `events`
-- 0.8 % and the rollups 2.3 % larger.
--
-- The constraints are the rules of an event, in the engine, so that no client can store a broken line.
-- Columns left out of an INSERT get their type's zero value, which the constraints refuse where a field is required.
-- A row with a chunk is from the loader, whose judge has applied each rule: applying those of texts and sides once more
-- took 0.16 us a row. What is left for every row costs no more than asking for its chunk.
-- cluster: by advertiser
CREATE TABLE IF NOT EXISTS events
(
    -- Optional: without one a record is told apart by the bytes of its chunk.
    event_id String,
    event_time DateTime64(3, 'UTC'),
    advertiser_id String,
    campaign_id String,
    creative_id String,
    publisher_id String,
    ad_unit_id String,
    site_id String,
    device LowCardinality(String) DEFAULT 'unknown',
    ad_requests UInt128 DEFAULT 0,
    impressions UInt128 DEFAULT 0,
    referrals UInt128 DEFAULT 0,
    conversions UInt128 DEFAULT 0,
    -- Currency units with 6 places.
    spend Decimal(38, 6),
    revenue Decimal(38, 6),
    -- The money on this line is already final.
    confirmed Bool,
    -- Why it came: invalid traffic, makegood, chargeback. A plain String: most events have none, and an empty one costs nothing.
    -- LowCardinality took 0.13 us a row of an INSERT, a fifteenth of an INSERT without the judge.
    reason String,
    -- The report day, in the time zone that is fixed when the store is created.
    day Date MATERIALIZED toDate(event_time, '{timezone}'),
    -- Which chunk brought the row (sha256, see load_chunks): answers "did this chunk arrive?" long after
    -- the deduplication window has forgotten it. One value for a whole insert, so it costs next to nothing.
    chunk LowCardinality(String),
    -- When the chunk was sent; unconfirmed_at of the rollups derives from it, so a rebuild gives the same.
    loaded_at DateTime64(6, 'UTC') DEFAULT now64(6),

    -- Before 1971 it is a missing field or a unit mistake; after 2149-06-05 no Date can hold the day.
    CONSTRAINT event_time CHECK event_time >= toDateTime64('1971-01-01 00:00:00', 3, 'UTC')
        AND event_time < toDateTime64('2149-06-05 00:00:00', 3, 'UTC'),
    CONSTRAINT device CHECK lengthUTF8(device) BETWEEN 1 AND 32 AND isValidUTF8(device),
    CONSTRAINT text_utf8 CHECK chunk != '' OR (isValidUTF8(event_id)
        AND isValidUTF8(advertiser_id) AND isValidUTF8(campaign_id) AND isValidUTF8(creative_id)
        AND isValidUTF8(publisher_id) AND isValidUTF8(ad_unit_id) AND isValidUTF8(site_id) AND isValidUTF8(reason)),
    CONSTRAINT text_length CHECK chunk != '' OR (lengthUTF8(event_id) <= 64
        AND lengthUTF8(advertiser_id) <= 128 AND lengthUTF8(campaign_id) <= 128 AND lengthUTF8(creative_id) <= 128
        AND lengthUTF8(publisher_id) <= 128 AND lengthUTF8(ad_unit_id) <= 128 AND lengthUTF8(site_id) <= 128
        AND lengthUTF8(reason) <= 64),
    CONSTRAINT advertiser_side CHECK chunk != ''
        OR if(advertiser_id = '', campaign_id = '' AND creative_id = '', campaign_id != ''),
    CONSTRAINT publisher_side CHECK chunk != ''
        OR if(publisher_id = '', ad_unit_id = '' AND site_id = '', ad_unit_id != ''),
    CONSTRAINT one_whole_side CHECK chunk != '' OR advertiser_id != '' OR publisher_id != '',
    -- Leaves room for rows that stand for many events.
    CONSTRAINT amounts CHECK chunk != '' OR (
        greatest(ad_requests, impressions, referrals, conversions) < toUInt128('1000000000000000000000000')
        AND greatest(abs(spend), abs(revenue)) < 1000000000000000000)
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (day, advertiser_id)
SETTINGS non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)';

-- The publishers' side of a cluster: the loader sends every chunk here too, by publisher, so that an account's rows
-- lie on one shard in both families. Stores nothing; the views of the publishers' rollups read what passes by.
-- A view of events that wrote to another shard would lose rows: the shards would name their parts of a chunk alike.
-- A Null table cannot lose a constraint: to change one, drop this table and make it anew, with the view that reads it.
-- cluster: only, by publisher
CREATE TABLE IF NOT EXISTS publisher_events AS events
ENGINE = Null;
