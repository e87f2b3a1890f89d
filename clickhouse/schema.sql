-- The schema as the migrations leave it. Written by npm run schema; the reasons are in migrations/.

CREATE TABLE events
(
    `event_id` String,
    `event_time` DateTime64(3, 'UTC'),
    `advertiser_id` String,
    `campaign_id` String,
    `creative_id` String,
    `publisher_id` String,
    `ad_unit_id` String,
    `site_id` String,
    `device` LowCardinality(String) DEFAULT 'unknown',
    `ad_requests` UInt128 DEFAULT 0,
    `impressions` UInt128 DEFAULT 0,
    `referrals` UInt128 DEFAULT 0,
    `conversions` UInt128 DEFAULT 0,
    `spend` Decimal(38, 6),
    `revenue` Decimal(38, 6),
    `confirmed` Bool,
    `reason` String,
    `day` Date MATERIALIZED toDate(event_time, 'UTC'),
    `chunk` LowCardinality(String),
    `loaded_at` DateTime64(6, 'UTC') DEFAULT now64(6),
    CONSTRAINT event_time CHECK (event_time >= toDateTime64('1971-01-01 00:00:00', 3, 'UTC')) AND (event_time < toDateTime64('2149-06-05 00:00:00', 3, 'UTC')),
    CONSTRAINT device CHECK ((lengthUTF8(device) >= 1) AND (lengthUTF8(device) <= 32)) AND isValidUTF8(device),
    CONSTRAINT text_utf8 CHECK (chunk != '') OR (isValidUTF8(event_id) AND isValidUTF8(advertiser_id) AND isValidUTF8(campaign_id) AND isValidUTF8(creative_id) AND isValidUTF8(publisher_id) AND isValidUTF8(ad_unit_id) AND isValidUTF8(site_id) AND isValidUTF8(reason)),
    CONSTRAINT text_length CHECK (chunk != '') OR ((lengthUTF8(event_id) <= 64) AND (lengthUTF8(advertiser_id) <= 128) AND (lengthUTF8(campaign_id) <= 128) AND (lengthUTF8(creative_id) <= 128) AND (lengthUTF8(publisher_id) <= 128) AND (lengthUTF8(ad_unit_id) <= 128) AND (lengthUTF8(site_id) <= 128) AND (lengthUTF8(reason) <= 64)),
    CONSTRAINT advertiser_side CHECK (chunk != '') OR if(advertiser_id = '', (campaign_id = '') AND (creative_id = ''), campaign_id != ''),
    CONSTRAINT publisher_side CHECK (chunk != '') OR if(publisher_id = '', (ad_unit_id = '') AND (site_id = ''), ad_unit_id != ''),
    CONSTRAINT one_whole_side CHECK (chunk != '') OR (advertiser_id != '') OR (publisher_id != ''),
    CONSTRAINT amounts CHECK (chunk != '') OR ((greatest(ad_requests, impressions, referrals, conversions) < toUInt128('1000000000000000000000000')) AND (greatest(abs(spend), abs(revenue)) < 1000000000000000000))
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (day, advertiser_id)
SETTINGS non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE account_currencies
(
    `account_id` String,
    `currency` Nullable(String),
    `version` DateTime64(6, 'UTC') DEFAULT now64(6),
    CONSTRAINT account_id CHECK ((lengthUTF8(account_id) >= 1) AND (lengthUTF8(account_id) <= 128)) AND isValidUTF8(account_id),
    CONSTRAINT currency CHECK (currency IS NULL) OR match(currency, '^[A-Z]{3}$')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY account_id
SETTINGS index_granularity = 8192;

CREATE TABLE account_limits
(
    `account_id` String,
    `requests` Nullable(UInt32),
    `version` DateTime64(6, 'UTC') DEFAULT now64(6),
    CONSTRAINT account_id CHECK ((lengthUTF8(account_id) >= 1) AND (lengthUTF8(account_id) <= 128)) AND isValidUTF8(account_id),
    CONSTRAINT requests CHECK ifNull(requests, 1) > 0
)
ENGINE = ReplacingMergeTree(version)
ORDER BY account_id
SETTINGS index_granularity = 8192;

CREATE TABLE ad_units
(
    `account_id` String,
    `ad_unit_id` String,
    `name` String,
    `version` DateTime64(9, 'UTC'),
    `changed_at` DateTime64(6, 'UTC') DEFAULT version,
    CONSTRAINT account_id CHECK ((lengthUTF8(account_id) >= 1) AND (lengthUTF8(account_id) <= 128)) AND isValidUTF8(account_id),
    CONSTRAINT ad_unit_id CHECK ((lengthUTF8(ad_unit_id) >= 1) AND (lengthUTF8(ad_unit_id) <= 128)) AND isValidUTF8(ad_unit_id),
    CONSTRAINT name CHECK ((lengthUTF8(name) >= 1) AND (lengthUTF8(name) <= 1024)) AND isValidUTF8(name)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account_id, ad_unit_id)
SETTINGS index_granularity = 8192;

CREATE TABLE ad_units_changes
(
    `account_id` String,
    `day` Date,
    `changed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (account_id, day)
SETTINGS index_granularity = 8192;

CREATE TABLE ad_units_closed
(
    `account_id` String,
    `revision` String,
    `day` Date,
    `ad_unit_id` String,
    `device` LowCardinality(String),
    `site_id` String,
    `ad_unit` String,
    `site` String,
    `estimated_revenue` Decimal(38, 6),
    `ad_requests` UInt128,
    `impressions` UInt128,
    `referrals` UInt128
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id, device, site_id, revision)
SETTINGS default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE ad_units_date
(
    `account_id` String,
    `day` Date,
    `ad_unit_id` String,
    `estimated_revenue` SimpleAggregateFunction(sum, Decimal(38, 6)),
    `ad_requests` SimpleAggregateFunction(sum, UInt128),
    `impressions` SimpleAggregateFunction(sum, UInt128),
    `referrals` SimpleAggregateFunction(sum, UInt128),
    `unconfirmed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    `changed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1, index_granularity = 8192;

CREATE TABLE ad_units_device_date
(
    `account_id` String,
    `day` Date,
    `ad_unit_id` String,
    `device` LowCardinality(String),
    `estimated_revenue` SimpleAggregateFunction(sum, Decimal(38, 6)),
    `ad_requests` SimpleAggregateFunction(sum, UInt128),
    `impressions` SimpleAggregateFunction(sum, UInt128),
    `referrals` SimpleAggregateFunction(sum, UInt128),
    `unconfirmed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id, device)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1, index_granularity = 8192;

CREATE TABLE ad_units_device_site_date
(
    `account_id` String,
    `day` Date,
    `ad_unit_id` String,
    `device` LowCardinality(String),
    `site_id` String,
    `estimated_revenue` SimpleAggregateFunction(sum, Decimal(38, 6)),
    `ad_requests` SimpleAggregateFunction(sum, UInt128),
    `impressions` SimpleAggregateFunction(sum, UInt128),
    `referrals` SimpleAggregateFunction(sum, UInt128),
    `unconfirmed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id, device, site_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1, index_granularity = 8192;

CREATE TABLE ad_units_site_date
(
    `account_id` String,
    `day` Date,
    `ad_unit_id` String,
    `site_id` String,
    `estimated_revenue` SimpleAggregateFunction(sum, Decimal(38, 6)),
    `ad_requests` SimpleAggregateFunction(sum, UInt128),
    `impressions` SimpleAggregateFunction(sum, UInt128),
    `referrals` SimpleAggregateFunction(sum, UInt128),
    `unconfirmed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id, site_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1, index_granularity = 8192;

CREATE TABLE agreed
(
    `schedule` String,
    `recipient` String,
    `at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (schedule, recipient)
SETTINGS index_granularity = 8192;

CREATE TABLE audit
(
    `id` String,
    `at` DateTime64(3, 'UTC'),
    `who` String,
    `token` String,
    `operation` LowCardinality(String),
    `input` String,
    `outcome` String,
    `error` String,
    `state` Enum8('begun' = 1, 'failed' = 2, 'done' = 3),
    `version` UInt8 DEFAULT toUInt8(state)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id
SETTINGS index_granularity = 8192;

CREATE TABLE campaigns
(
    `account_id` String,
    `campaign_id` String,
    `name` String,
    `version` DateTime64(9, 'UTC'),
    `changed_at` DateTime64(6, 'UTC') DEFAULT version,
    CONSTRAINT account_id CHECK ((lengthUTF8(account_id) >= 1) AND (lengthUTF8(account_id) <= 128)) AND isValidUTF8(account_id),
    CONSTRAINT campaign_id CHECK ((lengthUTF8(campaign_id) >= 1) AND (lengthUTF8(campaign_id) <= 128)) AND isValidUTF8(campaign_id),
    CONSTRAINT name CHECK ((lengthUTF8(name) >= 1) AND (lengthUTF8(name) <= 1024)) AND isValidUTF8(name)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account_id, campaign_id)
SETTINGS index_granularity = 8192;

CREATE TABLE campaigns_changes
(
    `account_id` String,
    `day` Date,
    `changed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (account_id, day)
SETTINGS index_granularity = 8192;

CREATE TABLE campaigns_closed
(
    `account_id` String,
    `revision` String,
    `day` Date,
    `campaign_id` String,
    `device` LowCardinality(String),
    `creative_id` String,
    `campaign` String,
    `creative_headline` String,
    `impressions` UInt128,
    `conversions` UInt128,
    `referrals` UInt128,
    `spent` Decimal(38, 6)
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id, device, creative_id, revision)
SETTINGS default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE campaigns_creative_date
(
    `account_id` String,
    `day` Date,
    `campaign_id` String,
    `creative_id` String,
    `impressions` SimpleAggregateFunction(sum, UInt128),
    `conversions` SimpleAggregateFunction(sum, UInt128),
    `referrals` SimpleAggregateFunction(sum, UInt128),
    `spent` SimpleAggregateFunction(sum, Decimal(38, 6)),
    `unconfirmed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id, creative_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1, index_granularity = 8192;

CREATE TABLE campaigns_date
(
    `account_id` String,
    `day` Date,
    `campaign_id` String,
    `impressions` SimpleAggregateFunction(sum, UInt128),
    `conversions` SimpleAggregateFunction(sum, UInt128),
    `referrals` SimpleAggregateFunction(sum, UInt128),
    `spent` SimpleAggregateFunction(sum, Decimal(38, 6)),
    `unconfirmed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    `changed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1, index_granularity = 8192;

CREATE TABLE campaigns_device_creative_date
(
    `account_id` String,
    `day` Date,
    `campaign_id` String,
    `device` LowCardinality(String),
    `creative_id` String,
    `impressions` SimpleAggregateFunction(sum, UInt128),
    `conversions` SimpleAggregateFunction(sum, UInt128),
    `referrals` SimpleAggregateFunction(sum, UInt128),
    `spent` SimpleAggregateFunction(sum, Decimal(38, 6)),
    `unconfirmed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id, device, creative_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1, index_granularity = 8192;

CREATE TABLE campaigns_device_date
(
    `account_id` String,
    `day` Date,
    `campaign_id` String,
    `device` LowCardinality(String),
    `impressions` SimpleAggregateFunction(sum, UInt128),
    `conversions` SimpleAggregateFunction(sum, UInt128),
    `referrals` SimpleAggregateFunction(sum, UInt128),
    `spent` SimpleAggregateFunction(sum, Decimal(38, 6)),
    `unconfirmed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id, device)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1, index_granularity = 8192;

CREATE TABLE channels
(
    `channel` String,
    `position` UInt64
)
ENGINE = ReplacingMergeTree(position)
ORDER BY channel
SETTINGS index_granularity = 8192;

CREATE TABLE chunk_days
(
    `chunk` String,
    `day` Date,
    `events` SimpleAggregateFunction(sum, UInt64),
    `loaded_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (chunk, day)
SETTINGS non_replicated_deduplication_window = 10000, index_granularity = 8192;

CREATE TABLE closes
(
    `account_id` String,
    `month` UInt32,
    `revision` String,
    `previous` String,
    `closed_at` DateTime64(6, 'UTC'),
    `rows` UInt64,
    `unconfirmed` Array(Tuple(
        family String,
        day Date)),
    `open_rejects` UInt64,
    `manifest` String CODEC(ZSTD(1))
)
ENGINE = MergeTree
ORDER BY (account_id, month, closed_at)
SETTINGS index_granularity = 8192;

CREATE TABLE confirmations
(
    `account_id` String,
    `day` Date,
    `confirmed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    `campaigns_changed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    `ad_units_changed_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    CONSTRAINT account_id CHECK ((lengthUTF8(account_id) >= 1) AND (lengthUTF8(account_id) <= 128)) AND isValidUTF8(account_id),
    CONSTRAINT day CHECK day > '1970-12-31'
)
ENGINE = AggregatingMergeTree
ORDER BY (account_id, day)
SETTINGS index_granularity = 8192;

CREATE TABLE creatives
(
    `account_id` String,
    `creative_id` String,
    `headline` String,
    `version` DateTime64(9, 'UTC'),
    `changed_at` DateTime64(6, 'UTC') DEFAULT version,
    CONSTRAINT account_id CHECK ((lengthUTF8(account_id) >= 1) AND (lengthUTF8(account_id) <= 128)) AND isValidUTF8(account_id),
    CONSTRAINT creative_id CHECK ((lengthUTF8(creative_id) >= 1) AND (lengthUTF8(creative_id) <= 128)) AND isValidUTF8(creative_id),
    CONSTRAINT headline CHECK ((lengthUTF8(headline) >= 1) AND (lengthUTF8(headline) <= 1024)) AND isValidUTF8(headline)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account_id, creative_id)
SETTINGS index_granularity = 8192;

CREATE VIEW damaged_parts
(
    `database` String,
    `name` String,
    `partition` String,
    `part` String
)
AS SELECT
    database,
    `table` AS name,
    ifNull(partition_id, 'all') AS partition,
    d.name AS part
FROM system.detached_parts AS d
WHERE startsWith(d.name, 'broken') AND (`table` != 'incoming_staging') AND (NOT startsWith(`table`, 'rebuild_'))
UNION ALL
SELECT
    '',
    '',
    '',
    '';

CREATE TABLE followed_files
(
    `reading` String,
    `name` String,
    `version` String,
    `load_id` String,
    `modified_at` DateTime64(3, 'UTC'),
    `looked_at` DateTime64(6, 'UTC'),
    `loaded_at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(looked_at)
ORDER BY (reading, name)
SETTINGS index_granularity = 8192;

CREATE TABLE incoming
(
    `event_id` String,
    `event_time` DateTime64(3, 'UTC'),
    `advertiser_id` String,
    `campaign_id` String,
    `creative_id` String,
    `publisher_id` String,
    `ad_unit_id` String,
    `site_id` String,
    `device` LowCardinality(String),
    `ad_requests` UInt64,
    `impressions` UInt64,
    `referrals` UInt64,
    `conversions` UInt64,
    `spend` Decimal(18, 6),
    `revenue` Decimal(18, 6),
    `confirmed` Bool,
    `reason` String,
    `chunk` LowCardinality(String),
    `loaded_at` DateTime64(6, 'UTC'),
    `load_id` LowCardinality(String),
    `file` LowCardinality(String),
    `line` UInt64,
    `faults` Array(Tuple(
        field String,
        reason String)),
    `raw` String,
    `fields` Map(String, String)
)
ENGINE = `Null`;

CREATE TABLE incoming_staging
(
    `event_id` String,
    `event_time` DateTime64(3, 'UTC'),
    `advertiser_id` String,
    `campaign_id` String,
    `creative_id` String,
    `publisher_id` String,
    `ad_unit_id` String,
    `site_id` String,
    `device` LowCardinality(String),
    `ad_requests` UInt64,
    `impressions` UInt64,
    `referrals` UInt64,
    `conversions` UInt64,
    `spend` Decimal(18, 6),
    `revenue` Decimal(18, 6),
    `confirmed` Bool,
    `reason` String,
    `chunk` LowCardinality(String),
    `loaded_at` DateTime64(6, 'UTC'),
    `load_id` LowCardinality(String),
    `file` LowCardinality(String),
    `line` UInt64,
    `faults` Array(Tuple(
        field String,
        reason String)),
    `raw` String,
    `fields` Map(String, String),
    `left_out` Bool,
    `batch` LowCardinality(String),
    `head` LowCardinality(String),
    `day` Date MATERIALIZED toDate(event_time, 'UTC'),
    `staged_at` DateTime('UTC') DEFAULT now()
)
ENGINE = MergeTree
PARTITION BY batch
ORDER BY (chunk, line)
TTL staged_at + toIntervalDay(1)
SETTINGS min_bytes_for_wide_part = 1000000000000, min_rows_for_wide_part = 1000000000000, default_compression_codec = 'NONE', index_granularity = 8192;

CREATE TABLE load_chunks
(
    `head` FixedString(32),
    `chunk` String,
    `load_id` String,
    `content` SimpleAggregateFunction(max, String),
    `batch` SimpleAggregateFunction(max, String),
    `first_line` SimpleAggregateFunction(max, UInt64),
    `first_byte` SimpleAggregateFunction(max, UInt64),
    `bytes` SimpleAggregateFunction(max, UInt64),
    `records` SimpleAggregateFunction(max, UInt64),
    `rows` SimpleAggregateFunction(max, UInt64),
    `rejected_rows` SimpleAggregateFunction(max, UInt64),
    `duplicate_rows` SimpleAggregateFunction(max, UInt64),
    `left_out_rows` SimpleAggregateFunction(max, UInt64),
    `sent_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    `loaded_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    INDEX in_doubt loaded_at TYPE minmax GRANULARITY 1,
    INDEX by_chunk chunk TYPE bloom_filter(0.0001) GRANULARITY 1
)
ENGINE = AggregatingMergeTree
ORDER BY (head, chunk, load_id)
SETTINGS index_granularity = 256, min_compress_block_size = 8192, max_compress_block_size = 16384;

CREATE TABLE loads
(
    `load_id` String,
    `kind` Enum8('events' = 1, 'replay' = 2, 'rebuild' = 3, 'replacement' = 4),
    `dedupe` Bool,
    `lock` String,
    `file` String,
    `user` String,
    `host` String,
    `pid` UInt32,
    `started_at` DateTime64(3, 'UTC'),
    `turn` DateTime64(6, 'UTC'),
    `finished_at` DateTime64(3, 'UTC'),
    `state` Enum8('running' = 1, 'failed' = 2, 'loaded' = 3, 'unloaded' = 4),
    `rows` UInt64,
    `repeated_rows` UInt64,
    `rejected_rows` UInt64,
    `duplicate_rows` UInt64,
    `left_out_rows` UInt64,
    `bytes` UInt64,
    `chunks` UInt32,
    `replay_id` String,
    `error` String,
    `version` DateTime64(6, 'UTC') DEFAULT now64(6),
    INDEX heard_of version TYPE minmax GRANULARITY 1,
    INDEX in_state state TYPE set(4) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
ORDER BY load_id
SETTINGS index_granularity = 8192;

CREATE TABLE mails
(
    `schedule` String,
    `day` Date,
    `recipient` String,
    `attempt` UInt16,
    `taker` String,
    `state` Enum8('taken' = 1, 'unknown' = 2, 'delayed' = 3, 'refused' = 4, 'sent' = 5),
    `at` DateTime64(3, 'UTC'),
    `error` String,
    `version` UInt8 DEFAULT toUInt8(state)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (schedule, day, recipient, attempt)
SETTINGS non_replicated_deduplication_window = 10000, index_granularity = 8192;

CREATE TABLE migrations
(
    `version` UInt32,
    `name` String,
    `checksum` String,
    `applied_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY version
SETTINGS index_granularity = 8192;

CREATE TABLE past_confirmations
(
    `account_id` String,
    `day` Date,
    `confirmed_at` DateTime64(6, 'UTC'),
    `made_at` DateTime64(6, 'UTC'),
    `shown_by` DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree
ORDER BY (account_id, day, made_at)
SETTINGS index_granularity = 8192;

CREATE TABLE past_events
(
    `day` Date,
    `advertiser_id` String,
    `campaign_id` String,
    `creative_id` String,
    `publisher_id` String,
    `ad_unit_id` String,
    `site_id` String,
    `device` LowCardinality(String),
    `ad_requests` UInt128,
    `impressions` UInt128,
    `referrals` UInt128,
    `conversions` UInt128,
    `spend` Decimal(38, 6),
    `revenue` Decimal(38, 6),
    `confirmed` Bool,
    `reason` LowCardinality(String),
    `chunk` LowCardinality(String),
    `load_id` LowCardinality(String),
    `replaced` Bool,
    `loaded_at` DateTime64(6, 'UTC'),
    `came_after` DateTime64(6, 'UTC'),
    `came_by` DateTime64(6, 'UTC'),
    `left_at` DateTime64(6, 'UTC')
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (day, advertiser_id)
SETTINGS default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE past_names
(
    `dictionary` LowCardinality(String),
    `account_id` String,
    `id` String,
    `name` String,
    `changed_at` DateTime64(6, 'UTC'),
    `shown_by` DateTime64(6, 'UTC'),
    `version` DateTime64(9, 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (dictionary, account_id, id, changed_at)
SETTINGS index_granularity = 8192;

CREATE TABLE pruned_months
(
    `month` UInt32,
    `pruned_at` SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY month
SETTINGS index_granularity = 8192;

CREATE TABLE rejected_rows
(
    `chunk` String,
    `line` UInt64,
    `load_id` String,
    `file` String,
    `faults` Array(Tuple(
        field String,
        reason String)),
    `raw` String,
    `fields` Map(String, String),
    `replay_id` String,
    `replayed_at` DateTime64(3, 'UTC'),
    `dismissed_at` DateTime64(3, 'UTC'),
    `version` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (chunk, line)
SETTINGS non_replicated_deduplication_window = 10000, min_parts_to_merge_at_once = 16, index_granularity = 8192;

CREATE TABLE rewrites
(
    `month` UInt32,
    `began_at` DateTime64(6, 'UTC'),
    `ended_at` DateTime64(6, 'UTC'),
    `lost` Bool,
    `version` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (month, began_at)
SETTINGS index_granularity = 8192;

CREATE TABLE schedules
(
    `id` String,
    `account_id` String,
    `report` String,
    `body` String,
    `period` LowCardinality(String),
    `every` LowCardinality(String),
    `at` String,
    `recipients` Array(String),
    `attach` LowCardinality(String),
    `wait_hours` UInt16,
    `token` String,
    `state` Enum8('active' = 1, 'paused' = 2, 'removed' = 3),
    `language` String DEFAULT 'en-GB',
    `made_by` String,
    `since` DateTime64(3, 'UTC'),
    `version` DateTime64(6, 'UTC') DEFAULT now64(6),
    CONSTRAINT account_id CHECK ((lengthUTF8(account_id) >= 1) AND (lengthUTF8(account_id) <= 128)) AND isValidUTF8(account_id)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id
SETTINGS index_granularity = 8192;

CREATE TABLE settings
(
    `timezone` String,
    `cluster` String,
    `shards` UInt16,
    `version` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = MergeTree
ORDER BY version
SETTINGS index_granularity = 8192;

CREATE TABLE sign_outs
(
    `person` String,
    `version` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY person
SETTINGS index_granularity = 8192;

CREATE TABLE sites
(
    `account_id` String,
    `site_id` String,
    `name` String,
    `version` DateTime64(9, 'UTC'),
    `changed_at` DateTime64(6, 'UTC') DEFAULT version,
    CONSTRAINT account_id CHECK ((lengthUTF8(account_id) >= 1) AND (lengthUTF8(account_id) <= 128)) AND isValidUTF8(account_id),
    CONSTRAINT site_id CHECK ((lengthUTF8(site_id) >= 1) AND (lengthUTF8(site_id) <= 128)) AND isValidUTF8(site_id),
    CONSTRAINT name CHECK ((lengthUTF8(name) >= 1) AND (lengthUTF8(name) <= 1024)) AND isValidUTF8(name)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account_id, site_id)
SETTINGS index_granularity = 8192;

CREATE VIEW store_state
(
    `database` String,
    `name` String,
    `partition` String,
    `folder` String,
    `first_day` Date,
    `last_day` Date,
    `state` String
)
AS SELECT
    database,
    `table` AS name,
    partition_id AS partition,
    splitByChar('/', path)[-3] AS folder,
    min(min_date) AS first_day,
    max(max_date) AS last_day,
    concat(toString(max(max_block_number)), ' ', toString(sum(toUInt64OrZero(splitByChar('_', p.name)[5]) * ((max_block_number - min_block_number) + 1)))) AS state
FROM system.parts AS p
WHERE active AND (endsWith(`table`, '_date') OR endsWith(`table`, '_changes') OR (`table` IN ('confirmations', 'migrations')))
GROUP BY
    database,
    `table`,
    partition_id,
    folder;

CREATE TABLE tokens
(
    `id` String,
    `account_id` String,
    `purpose` LowCardinality(String) DEFAULT 'report',
    `family` LowCardinality(String),
    `hash` String,
    `label` String,
    `created_at` DateTime64(3, 'UTC'),
    `expires_at` Nullable(DateTime64(3, 'UTC')),
    `revoked_at` Nullable(DateTime64(3, 'UTC')),
    `version` DateTime64(6, 'UTC') DEFAULT now64(6),
    CONSTRAINT account_id CHECK ((lengthUTF8(account_id) >= 1) AND (lengthUTF8(account_id) <= 128)) AND isValidUTF8(account_id)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id
SETTINGS index_granularity = 8192;

CREATE TABLE unsubscribed
(
    `schedule` String,
    `recipient` String,
    `at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (schedule, recipient)
SETTINGS index_granularity = 8192;

CREATE TABLE withdrawn_chunks
(
    `chunk` String,
    `day` Date,
    `load_id` String,
    `at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (chunk, day)
SETTINGS index_granularity = 8192;

CREATE DICTIONARY ad_unit_names
(
    `account_id` String,
    `ad_unit_id` String,
    `name` String,
    `name_json` String
)
PRIMARY KEY account_id, ad_unit_id
SOURCE(CLICKHOUSE(USER 'adtally' PASSWORD '[HIDDEN]' DB 'adtally' QUERY 'SELECT account_id, ad_unit_id, name, toJSONString(name) AS name_json FROM ad_units FINAL\n           UNION ALL SELECT \'\', \'\', toString(generateUUIDv4()), \'\'\n           UNION ALL SELECT \'\', account_id, toString(max(t.changed_at)), \'\' FROM ad_units AS t GROUP BY account_id\n           SETTINGS output_format_json_escape_forward_slashes = 0' INVALIDATE_QUERY 'SELECT max(version) FROM ad_units'))
LIFETIME(MIN 30 MAX 60)
LAYOUT(COMPLEX_KEY_HASHED_ARRAY());

CREATE DICTIONARY campaign_names
(
    `account_id` String,
    `campaign_id` String,
    `name` String,
    `name_json` String
)
PRIMARY KEY account_id, campaign_id
SOURCE(CLICKHOUSE(USER 'adtally' PASSWORD '[HIDDEN]' DB 'adtally' QUERY 'SELECT account_id, campaign_id, name, toJSONString(name) AS name_json FROM campaigns FINAL\n           UNION ALL SELECT \'\', \'\', toString(generateUUIDv4()), \'\'\n           UNION ALL SELECT \'\', account_id, toString(max(t.changed_at)), \'\' FROM campaigns AS t GROUP BY account_id\n           SETTINGS output_format_json_escape_forward_slashes = 0' INVALIDATE_QUERY 'SELECT max(version) FROM campaigns'))
LIFETIME(MIN 30 MAX 60)
LAYOUT(COMPLEX_KEY_HASHED_ARRAY());

CREATE DICTIONARY creative_headlines
(
    `account_id` String,
    `creative_id` String,
    `headline` String,
    `headline_json` String
)
PRIMARY KEY account_id, creative_id
SOURCE(CLICKHOUSE(USER 'adtally' PASSWORD '[HIDDEN]' DB 'adtally' QUERY 'SELECT account_id, creative_id, headline, toJSONString(headline) AS headline_json FROM creatives FINAL\n           UNION ALL SELECT \'\', \'\', toString(generateUUIDv4()), \'\'\n           UNION ALL SELECT \'\', account_id, toString(max(t.changed_at)), \'\' FROM creatives AS t GROUP BY account_id\n           SETTINGS output_format_json_escape_forward_slashes = 0' INVALIDATE_QUERY 'SELECT max(version) FROM creatives'))
LIFETIME(MIN 30 MAX 60)
LAYOUT(COMPLEX_KEY_HASHED_ARRAY());

CREATE DICTIONARY site_names
(
    `account_id` String,
    `site_id` String,
    `name` String,
    `name_json` String
)
PRIMARY KEY account_id, site_id
SOURCE(CLICKHOUSE(USER 'adtally' PASSWORD '[HIDDEN]' DB 'adtally' QUERY 'SELECT account_id, site_id, name, toJSONString(name) AS name_json FROM sites FINAL\n           UNION ALL SELECT \'\', \'\', toString(generateUUIDv4()), \'\'\n           UNION ALL SELECT \'\', account_id, toString(max(t.changed_at)), \'\' FROM sites AS t GROUP BY account_id\n           SETTINGS output_format_json_escape_forward_slashes = 0' INVALIDATE_QUERY 'SELECT max(version) FROM sites'))
LIFETIME(MIN 30 MAX 60)
LAYOUT(COMPLEX_KEY_HASHED_ARRAY());

CREATE MATERIALIZED VIEW ad_units_date_view TO ad_units_date AS SELECT account_id, day, ad_unit_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals, max(r.unconfirmed_at) AS unconfirmed_at, now64(6, 'UTC') AS changed_at FROM ad_units_device_date AS r GROUP BY account_id, day, ad_unit_id;

CREATE MATERIALIZED VIEW ad_units_device_date_view TO ad_units_device_date AS SELECT account_id, day, ad_unit_id, device, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals, max(r.unconfirmed_at) AS unconfirmed_at FROM ad_units_device_site_date AS r GROUP BY account_id, day, ad_unit_id, device;

CREATE MATERIALIZED VIEW ad_units_device_site_date_view TO ad_units_device_site_date AS SELECT publisher_id AS account_id, day, ad_unit_id, device, site_id, sum(e.revenue) AS estimated_revenue, sum(e.ad_requests) AS ad_requests, sum(e.impressions) AS impressions, sum(e.referrals) AS referrals, maxIf(loaded_at, (revenue != 0) AND (NOT confirmed)) AS unconfirmed_at FROM events AS e WHERE publisher_id != '' GROUP BY account_id, day, ad_unit_id, device, site_id;

CREATE MATERIALIZED VIEW ad_units_past_view TO past_names AS SELECT 'ad_unit_names' AS dictionary, account_id, ad_unit_id AS id, name, changed_at, changed_at + toIntervalMinute(2) AS shown_by, version FROM ad_units;

CREATE MATERIALIZED VIEW ad_units_site_date_view TO ad_units_site_date AS SELECT account_id, day, ad_unit_id, site_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals, max(r.unconfirmed_at) AS unconfirmed_at FROM ad_units_device_site_date AS r GROUP BY account_id, day, ad_unit_id, site_id;

CREATE MATERIALIZED VIEW campaigns_creative_date_view TO campaigns_creative_date AS SELECT account_id, day, campaign_id, creative_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent, max(r.unconfirmed_at) AS unconfirmed_at FROM campaigns_device_creative_date AS r GROUP BY account_id, day, campaign_id, creative_id;

CREATE MATERIALIZED VIEW campaigns_date_view TO campaigns_date AS SELECT account_id, day, campaign_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent, max(r.unconfirmed_at) AS unconfirmed_at, now64(6, 'UTC') AS changed_at FROM campaigns_device_date AS r GROUP BY account_id, day, campaign_id;

CREATE MATERIALIZED VIEW campaigns_device_creative_date_view TO campaigns_device_creative_date AS SELECT advertiser_id AS account_id, day, campaign_id, device, creative_id, sum(e.impressions) AS impressions, sum(e.conversions) AS conversions, sum(e.referrals) AS referrals, sum(e.spend) AS spent, maxIf(loaded_at, (spend != 0) AND (NOT confirmed)) AS unconfirmed_at FROM events AS e WHERE advertiser_id != '' GROUP BY account_id, day, campaign_id, device, creative_id;

CREATE MATERIALIZED VIEW campaigns_device_date_view TO campaigns_device_date AS SELECT account_id, day, campaign_id, device, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent, max(r.unconfirmed_at) AS unconfirmed_at FROM campaigns_device_creative_date AS r GROUP BY account_id, day, campaign_id, device;

CREATE MATERIALIZED VIEW campaigns_past_view TO past_names AS SELECT 'campaign_names' AS dictionary, account_id, campaign_id AS id, name, changed_at, changed_at + toIntervalMinute(2) AS shown_by, version FROM campaigns;

CREATE MATERIALIZED VIEW chunk_days_view TO chunk_days AS SELECT any(e.chunk) AS chunk, day, count() AS events, max(e.loaded_at) AS loaded_at FROM events AS e GROUP BY sipHash128(e.chunk), day;

CREATE MATERIALIZED VIEW confirmations_past_view TO past_confirmations AS SELECT account_id, day, confirmed_at, nowInBlock64(6, 'UTC') AS made_at, made_at + toIntervalMinute(2) AS shown_by FROM confirmations;

CREATE MATERIALIZED VIEW creatives_past_view TO past_names AS SELECT 'creative_headlines' AS dictionary, account_id, creative_id AS id, headline AS name, changed_at, changed_at + toIntervalMinute(2) AS shown_by, version FROM creatives;

CREATE MATERIALIZED VIEW events_view TO events AS SELECT event_id, event_time, advertiser_id, campaign_id, creative_id, publisher_id, ad_unit_id, site_id, device, ad_requests, impressions, referrals, conversions, spend, revenue, confirmed, reason, chunk, loaded_at FROM incoming WHERE empty(faults);

CREATE MATERIALIZED VIEW rejected_rows_view TO rejected_rows AS SELECT chunk, line, load_id, file, faults, raw, fields, toDateTime64(0, 6, 'UTC') AS version FROM incoming WHERE notEmpty(faults);

CREATE MATERIALIZED VIEW sites_past_view TO past_names AS SELECT 'site_names' AS dictionary, account_id, site_id AS id, name, changed_at, changed_at + toIntervalMinute(2) AS shown_by, version FROM sites;
