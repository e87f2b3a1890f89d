-- Pre-aggregated tables, one for each combination of dimensions and always by day; a report without the
-- day reads the same table and groups the day away.
--
-- Engine: AggregatingMergeTree with SimpleAggregateFunction merges rows of equal sort key by adding them up.
-- Not SummingMergeTree, which deletes rows whose sums are all zero; such rows belong in the report.
-- Sort key: the owner and the range of days are its prefix, so a report reads one contiguous run; the
-- grouping keys follow in the order of the rows of a dated report, so it can be grouped while it is read.
-- Merges: a month that was not loaded for four hours is merged into one part, from which a dated report is read
-- as it lies (engine CPU of 324,000 rows: 231 ms, in two parts a month 286 ms).
-- unconfirmed_at: load time of the latest money that was not marked confirmed; the epoch when all is confirmed.
-- changed_at, in the coarsest of each family: see campaigns_changes below.
-- Views group by exactly the sort key. The finest reads events (in a cluster the publishers' reads
-- publisher_events), a coarser one the finer rollup.

-- cluster: by account
CREATE TABLE IF NOT EXISTS campaigns_device_creative_date
(
    account_id String,
    day Date,
    campaign_id String,
    device LowCardinality(String),
    creative_id String,
    impressions SimpleAggregateFunction(sum, UInt128),
    conversions SimpleAggregateFunction(sum, UInt128),
    referrals SimpleAggregateFunction(sum, UInt128),
    spent SimpleAggregateFunction(sum, Decimal(38, 6)),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id, device, creative_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS campaigns_device_creative_date_view TO campaigns_device_creative_date AS
SELECT advertiser_id AS account_id, day, campaign_id, device, creative_id, sum(e.impressions) AS impressions, sum(e.conversions) AS conversions, sum(e.referrals) AS referrals, sum(e.spend) AS spent, maxIf(loaded_at, spend != 0 AND NOT confirmed) AS unconfirmed_at
FROM events AS e WHERE advertiser_id != ''
GROUP BY account_id, day, campaign_id, device, creative_id;

-- cluster: by account
CREATE TABLE IF NOT EXISTS campaigns_creative_date
(
    account_id String,
    day Date,
    campaign_id String,
    creative_id String,
    impressions SimpleAggregateFunction(sum, UInt128),
    conversions SimpleAggregateFunction(sum, UInt128),
    referrals SimpleAggregateFunction(sum, UInt128),
    spent SimpleAggregateFunction(sum, Decimal(38, 6)),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id, creative_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS campaigns_creative_date_view TO campaigns_creative_date AS
SELECT account_id, day, campaign_id, creative_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent, max(r.unconfirmed_at) AS unconfirmed_at
FROM campaigns_device_creative_date AS r
GROUP BY account_id, day, campaign_id, creative_id;

-- cluster: by account
CREATE TABLE IF NOT EXISTS campaigns_device_date
(
    account_id String,
    day Date,
    campaign_id String,
    device LowCardinality(String),
    impressions SimpleAggregateFunction(sum, UInt128),
    conversions SimpleAggregateFunction(sum, UInt128),
    referrals SimpleAggregateFunction(sum, UInt128),
    spent SimpleAggregateFunction(sum, Decimal(38, 6)),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id, device)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS campaigns_device_date_view TO campaigns_device_date AS
SELECT account_id, day, campaign_id, device, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent, max(r.unconfirmed_at) AS unconfirmed_at
FROM campaigns_device_creative_date AS r
GROUP BY account_id, day, campaign_id, device;

-- cluster: by account
CREATE TABLE IF NOT EXISTS campaigns_date
(
    account_id String,
    day Date,
    campaign_id String,
    impressions SimpleAggregateFunction(sum, UInt128),
    conversions SimpleAggregateFunction(sum, UInt128),
    referrals SimpleAggregateFunction(sum, UInt128),
    spent SimpleAggregateFunction(sum, Decimal(38, 6)),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    changed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS campaigns_date_view TO campaigns_date AS
SELECT account_id, day, campaign_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent, max(r.unconfirmed_at) AS unconfirmed_at, now64(6, 'UTC') AS changed_at
FROM campaigns_device_date AS r
GROUP BY account_id, day, campaign_id;

-- cluster: by account
CREATE TABLE IF NOT EXISTS ad_units_device_site_date
(
    account_id String,
    day Date,
    ad_unit_id String,
    device LowCardinality(String),
    site_id String,
    estimated_revenue SimpleAggregateFunction(sum, Decimal(38, 6)),
    ad_requests SimpleAggregateFunction(sum, UInt128),
    impressions SimpleAggregateFunction(sum, UInt128),
    referrals SimpleAggregateFunction(sum, UInt128),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id, device, site_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ad_units_device_site_date_view TO ad_units_device_site_date AS
SELECT publisher_id AS account_id, day, ad_unit_id, device, site_id, sum(e.revenue) AS estimated_revenue, sum(e.ad_requests) AS ad_requests, sum(e.impressions) AS impressions, sum(e.referrals) AS referrals, maxIf(loaded_at, revenue != 0 AND NOT confirmed) AS unconfirmed_at
FROM {publisher_events} AS e WHERE publisher_id != ''
GROUP BY account_id, day, ad_unit_id, device, site_id;

-- cluster: by account
CREATE TABLE IF NOT EXISTS ad_units_site_date
(
    account_id String,
    day Date,
    ad_unit_id String,
    site_id String,
    estimated_revenue SimpleAggregateFunction(sum, Decimal(38, 6)),
    ad_requests SimpleAggregateFunction(sum, UInt128),
    impressions SimpleAggregateFunction(sum, UInt128),
    referrals SimpleAggregateFunction(sum, UInt128),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id, site_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ad_units_site_date_view TO ad_units_site_date AS
SELECT account_id, day, ad_unit_id, site_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals, max(r.unconfirmed_at) AS unconfirmed_at
FROM ad_units_device_site_date AS r
GROUP BY account_id, day, ad_unit_id, site_id;

-- cluster: by account
CREATE TABLE IF NOT EXISTS ad_units_device_date
(
    account_id String,
    day Date,
    ad_unit_id String,
    device LowCardinality(String),
    estimated_revenue SimpleAggregateFunction(sum, Decimal(38, 6)),
    ad_requests SimpleAggregateFunction(sum, UInt128),
    impressions SimpleAggregateFunction(sum, UInt128),
    referrals SimpleAggregateFunction(sum, UInt128),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id, device)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ad_units_device_date_view TO ad_units_device_date AS
SELECT account_id, day, ad_unit_id, device, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals, max(r.unconfirmed_at) AS unconfirmed_at
FROM ad_units_device_site_date AS r
GROUP BY account_id, day, ad_unit_id, device;

-- cluster: by account
CREATE TABLE IF NOT EXISTS ad_units_date
(
    account_id String,
    day Date,
    ad_unit_id String,
    estimated_revenue SimpleAggregateFunction(sum, Decimal(38, 6)),
    ad_requests SimpleAggregateFunction(sum, UInt128),
    impressions SimpleAggregateFunction(sum, UInt128),
    referrals SimpleAggregateFunction(sum, UInt128),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    changed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ad_units_date_view TO ad_units_date AS
SELECT account_id, day, ad_unit_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals, max(r.unconfirmed_at) AS unconfirmed_at, now64(6, 'UTC') AS changed_at
FROM ad_units_device_date AS r
GROUP BY account_id, day, ad_unit_id;

-- When a day of an account last changed in the reports of a family, so that a caller can ask for what changed since.
-- A load writes it beside the rows of the coarsest rollup, under the token of the chunk, so that a repeated chunk changes
-- nothing. It is the time of the server that stores the row, read when it does: later than the claim on the chunk, and
-- until that chunk is loaded nobody is told that he knows all changes up to now (src/report/changes/). What else changes a
-- day (a rebuild, an unload, a load that completes another one) writes into a table of the family.
-- Rows of that table stay when the last event of a day is taken back: that is a change too.
-- cluster: by account
CREATE TABLE IF NOT EXISTS campaigns_changes
(
    account_id String,
    day Date,
    changed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (account_id, day);

-- cluster: by account
CREATE TABLE IF NOT EXISTS ad_units_changes
(
    account_id String,
    day Date,
    changed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (account_id, day);

-- The last confirmation of an account's revenue of a day. Money of that day that was loaded later and not
-- marked confirmed makes the day unconfirmed again, by comparison with unconfirmed_at of the rollups.
-- Sort key: a report reads one account and a range of days.
-- cluster: by account
CREATE TABLE IF NOT EXISTS confirmations
(
    account_id String,
    day Date,
    confirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    -- When a confirmation last made a day confirmed that was not, by family; the epoch when none has. In the same row, so
    -- that it is never there without the other.
    campaigns_changed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    ad_units_changed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id),
    -- 1970-01-01 is the value of a missing field.
    CONSTRAINT day CHECK day > '1970-12-31'
)
ENGINE = AggregatingMergeTree
ORDER BY (account_id, day);
