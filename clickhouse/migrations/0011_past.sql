-- What reports said before: what was taken away since, the names and confirmations of then, and when what reports show was
-- rewritten. Reports as of a moment read it (src/report/as-of-moment.ts, docs/as-of.md).

-- Events that were taken back or replaced, as far as reports go by them. A row counted from came_by until left_at; between
-- came_after and came_by it arrived, and nobody can tell when reports had it.
-- cluster: by advertiser
CREATE TABLE IF NOT EXISTS past_events
(
    day Date,
    advertiser_id String,
    campaign_id String,
    creative_id String,
    publisher_id String,
    ad_unit_id String,
    site_id String,
    device LowCardinality(String),
    ad_requests UInt128,
    impressions UInt128,
    referrals UInt128,
    conversions UInt128,
    spend Decimal(38, 6),
    revenue Decimal(38, 6),
    confirmed Bool,
    reason LowCardinality(String),
    chunk LowCardinality(String),
    -- The load that brought it.
    load_id LowCardinality(String),
    -- Whether other events came in its place; otherwise it was taken back.
    replaced Bool,
    loaded_at DateTime64(6, 'UTC'),
    came_after DateTime64(6, 'UTC'),
    -- 2200-01-01 where it never was known to be complete.
    came_by DateTime64(6, 'UTC'),
    left_at DateTime64(6, 'UTC')
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (day, advertiser_id)
SETTINGS default_compression_codec = 'ZSTD(1)';

-- Times at which what reports show changed otherwise than by events that came: of a month, or, as month 0, of the whole
-- store. Of a moment from began_at to ended_at nobody can tell what reports showed.
-- cluster: by month
CREATE TABLE IF NOT EXISTS rewrites
(
    -- yyyymm
    month UInt32,
    began_at DateTime64(6, 'UTC'),
    -- The epoch until it ended; of an interrupted one until another of the month did.
    ended_at DateTime64(6, 'UTC'),
    -- What was before cannot be told any more either.
    lost Bool,
    version DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (month, began_at);

-- Every name that an id ever had, since changed_at. Reports show it from a moment between that and shown_by on: when the loader
-- saw that they do, or two minutes later, because dictionaries read names anew within a minute.
-- cluster: on every node
CREATE TABLE IF NOT EXISTS past_names
(
    dictionary LowCardinality(String),
    account_id String,
    id String,
    name String,
    changed_at DateTime64(6, 'UTC'),
    shown_by DateTime64(6, 'UTC'),
    version DateTime64(9, 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (dictionary, account_id, id, changed_at);

-- cluster: by account
CREATE TABLE IF NOT EXISTS past_confirmations
(
    account_id String,
    day Date,
    confirmed_at DateTime64(6, 'UTC'),
    -- When it was made; confirmed_at may be earlier.
    made_at DateTime64(6, 'UTC'),
    -- As that of names.
    shown_by DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree
ORDER BY (account_id, day, made_at);

CREATE MATERIALIZED VIEW IF NOT EXISTS campaigns_past_view TO {database}.past_names AS
SELECT 'campaign_names' AS dictionary, account_id, campaign_id AS id, name,
  changed_at, changed_at + INTERVAL 2 MINUTE AS shown_by, version FROM {database}.campaigns;

CREATE MATERIALIZED VIEW IF NOT EXISTS creatives_past_view TO {database}.past_names AS
SELECT 'creative_headlines' AS dictionary, account_id, creative_id AS id, headline AS name,
  changed_at, changed_at + INTERVAL 2 MINUTE AS shown_by, version FROM {database}.creatives;

CREATE MATERIALIZED VIEW IF NOT EXISTS ad_units_past_view TO {database}.past_names AS
SELECT 'ad_unit_names' AS dictionary, account_id, ad_unit_id AS id, name,
  changed_at, changed_at + INTERVAL 2 MINUTE AS shown_by, version FROM {database}.ad_units;

CREATE MATERIALIZED VIEW IF NOT EXISTS sites_past_view TO {database}.past_names AS
SELECT 'site_names' AS dictionary, account_id, site_id AS id, name,
  changed_at, changed_at + INTERVAL 2 MINUTE AS shown_by, version FROM {database}.sites;

CREATE MATERIALIZED VIEW IF NOT EXISTS confirmations_past_view TO past_confirmations AS
SELECT account_id, day, confirmed_at, nowInBlock64(6, 'UTC') AS made_at, made_at + INTERVAL 2 MINUTE AS shown_by FROM confirmations;
