-- Pre-aggregated tables, one for each combination of dimensions and always by day; a report without the
-- day reads the same table and groups the day away.
--
-- Engine: AggregatingMergeTree with SimpleAggregateFunction merges rows of equal sort key by adding them up.
-- Not SummingMergeTree, which deletes rows whose sums are all zero; such rows belong in the report.
-- Sort key: the owner and the range of days are its prefix, so a report reads one contiguous run; the
-- grouping keys follow in the order of the rows of a dated report, so it can be grouped while it is read.
-- Merges: a month that was not loaded for four hours is merged into one part, from which a dated report is read
-- as it lies (engine CPU of 324,000 rows: 231 ms, in two parts a month 286 ms).
-- unconfirmed_at: load time of the latest money that was not marked confirmed; the epoch when there is none.
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
    impressions SimpleAggregateFunction(sum, UInt64),
    conversions SimpleAggregateFunction(sum, UInt64),
    referrals SimpleAggregateFunction(sum, UInt64),
    spent SimpleAggregateFunction(sum, Decimal(38, 6)),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id, device, creative_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS campaigns_device_creative_date_view TO campaigns_device_creative_date AS
SELECT advertiser_id AS account_id, day, campaign_id, device, creative_id, sumIf(quantity, event_type = 'impression') AS impressions, sumIf(quantity, event_type = 'conversion') AS conversions, sumIf(quantity, event_type = 'referral') AS referrals, sum(spend) AS spent, maxIf(loaded_at, spend != 0 AND NOT confirmed) AS unconfirmed_at
FROM events WHERE advertiser_id != ''
GROUP BY account_id, day, campaign_id, device, creative_id;

-- cluster: by account
CREATE TABLE IF NOT EXISTS campaigns_creative_date
(
    account_id String,
    day Date,
    campaign_id String,
    creative_id String,
    impressions SimpleAggregateFunction(sum, UInt64),
    conversions SimpleAggregateFunction(sum, UInt64),
    referrals SimpleAggregateFunction(sum, UInt64),
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
    impressions SimpleAggregateFunction(sum, UInt64),
    conversions SimpleAggregateFunction(sum, UInt64),
    referrals SimpleAggregateFunction(sum, UInt64),
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
    impressions SimpleAggregateFunction(sum, UInt64),
    conversions SimpleAggregateFunction(sum, UInt64),
    referrals SimpleAggregateFunction(sum, UInt64),
    spent SimpleAggregateFunction(sum, Decimal(38, 6)),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS campaigns_date_view TO campaigns_date AS
SELECT account_id, day, campaign_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent, max(r.unconfirmed_at) AS unconfirmed_at
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
    ad_requests SimpleAggregateFunction(sum, UInt64),
    impressions SimpleAggregateFunction(sum, UInt64),
    referrals SimpleAggregateFunction(sum, UInt64),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id, device, site_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ad_units_device_site_date_view TO ad_units_device_site_date AS
SELECT publisher_id AS account_id, day, ad_unit_id, device, site_id, sum(revenue) AS estimated_revenue, sumIf(quantity, event_type = 'ad_request') AS ad_requests, sumIf(quantity, event_type = 'impression') AS impressions, sumIf(quantity, event_type = 'referral') AS referrals, maxIf(loaded_at, revenue != 0 AND NOT confirmed) AS unconfirmed_at
FROM {publisher_events} WHERE publisher_id != ''
GROUP BY account_id, day, ad_unit_id, device, site_id;

-- cluster: by account
CREATE TABLE IF NOT EXISTS ad_units_site_date
(
    account_id String,
    day Date,
    ad_unit_id String,
    site_id String,
    estimated_revenue SimpleAggregateFunction(sum, Decimal(38, 6)),
    ad_requests SimpleAggregateFunction(sum, UInt64),
    impressions SimpleAggregateFunction(sum, UInt64),
    referrals SimpleAggregateFunction(sum, UInt64),
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
    ad_requests SimpleAggregateFunction(sum, UInt64),
    impressions SimpleAggregateFunction(sum, UInt64),
    referrals SimpleAggregateFunction(sum, UInt64),
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
    ad_requests SimpleAggregateFunction(sum, UInt64),
    impressions SimpleAggregateFunction(sum, UInt64),
    referrals SimpleAggregateFunction(sum, UInt64),
    unconfirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id)
SETTINGS non_replicated_deduplication_window = 10000, min_age_to_force_merge_seconds = 14400, min_age_to_force_merge_on_partition_only = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS ad_units_date_view TO ad_units_date AS
SELECT account_id, day, ad_unit_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals, max(r.unconfirmed_at) AS unconfirmed_at
FROM ad_units_device_date AS r
GROUP BY account_id, day, ad_unit_id;
