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

-- cluster: by account
ALTER TABLE campaigns_date ADD COLUMN IF NOT EXISTS changed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'));

ALTER TABLE campaigns_date_view MODIFY QUERY
SELECT account_id, day, campaign_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent, max(r.unconfirmed_at) AS unconfirmed_at, now64(6, 'UTC') AS changed_at
FROM campaigns_device_date AS r
GROUP BY account_id, day, campaign_id;

-- cluster: by account
ALTER TABLE ad_units_date ADD COLUMN IF NOT EXISTS changed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'));

ALTER TABLE ad_units_date_view MODIFY QUERY
SELECT account_id, day, ad_unit_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals, max(r.unconfirmed_at) AS unconfirmed_at, now64(6, 'UTC') AS changed_at
FROM ad_units_device_date AS r
GROUP BY account_id, day, ad_unit_id;

-- All that was there before: it changed now.
INSERT INTO campaigns_changes (account_id, day, changed_at)
SELECT account_id, day, now64(6, 'UTC') FROM campaigns_date GROUP BY account_id, day;

INSERT INTO ad_units_changes (account_id, day, changed_at)
SELECT account_id, day, now64(6, 'UTC') FROM ad_units_date GROUP BY account_id, day;

-- When a confirmation last made a day confirmed that was not, by family; the epoch when none has. In the same row, so
-- that it is never there without the other.
-- cluster: by account
ALTER TABLE confirmations
    ADD COLUMN IF NOT EXISTS campaigns_changed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    ADD COLUMN IF NOT EXISTS ad_units_changed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'));

-- When a name last became another one; version grows also when the same list is loaded again.
-- cluster: on every node
ALTER TABLE campaigns ADD COLUMN IF NOT EXISTS changed_at DateTime64(6, 'UTC') DEFAULT version;
-- cluster: on every node
ALTER TABLE creatives ADD COLUMN IF NOT EXISTS changed_at DateTime64(6, 'UTC') DEFAULT version;
-- cluster: on every node
ALTER TABLE ad_units ADD COLUMN IF NOT EXISTS changed_at DateTime64(6, 'UTC') DEFAULT version;
-- cluster: on every node
ALTER TABLE sites ADD COLUMN IF NOT EXISTS changed_at DateTime64(6, 'UTC') DEFAULT version;

-- Under the key ('', account), which no name has, the dictionaries say when a name of the account last changed: it shows
-- together with the names, and is read by those who may read these.
-- cluster: on every node
CREATE OR REPLACE DICTIONARY campaign_names (account_id String, campaign_id String, name String, name_json String)
PRIMARY KEY account_id, campaign_id
SOURCE(CLICKHOUSE(
    USER '{user}' PASSWORD '{password}' DB '{database}'
    QUERY 'SELECT account_id, campaign_id, name, toJSONString(name) AS name_json FROM {database}.campaigns FINAL
           UNION ALL SELECT \'\', \'\', toString(generateUUIDv4()), \'\'
           UNION ALL SELECT \'\', account_id, toString(max(t.changed_at)), \'\' FROM {database}.campaigns AS t GROUP BY account_id
           SETTINGS output_format_json_escape_forward_slashes = 0'
    INVALIDATE_QUERY 'SELECT max(version) FROM {database}.campaigns'
))
LAYOUT(COMPLEX_KEY_HASHED())
LIFETIME(MIN 30 MAX 60);

-- cluster: on every node
CREATE OR REPLACE DICTIONARY creative_headlines (account_id String, creative_id String, headline String, headline_json String)
PRIMARY KEY account_id, creative_id
SOURCE(CLICKHOUSE(
    USER '{user}' PASSWORD '{password}' DB '{database}'
    QUERY 'SELECT account_id, creative_id, headline, toJSONString(headline) AS headline_json FROM {database}.creatives FINAL
           UNION ALL SELECT \'\', \'\', toString(generateUUIDv4()), \'\'
           UNION ALL SELECT \'\', account_id, toString(max(t.changed_at)), \'\' FROM {database}.creatives AS t GROUP BY account_id
           SETTINGS output_format_json_escape_forward_slashes = 0'
    INVALIDATE_QUERY 'SELECT max(version) FROM {database}.creatives'
))
LAYOUT(COMPLEX_KEY_HASHED())
LIFETIME(MIN 30 MAX 60);

-- cluster: on every node
CREATE OR REPLACE DICTIONARY ad_unit_names (account_id String, ad_unit_id String, name String, name_json String)
PRIMARY KEY account_id, ad_unit_id
SOURCE(CLICKHOUSE(
    USER '{user}' PASSWORD '{password}' DB '{database}'
    QUERY 'SELECT account_id, ad_unit_id, name, toJSONString(name) AS name_json FROM {database}.ad_units FINAL
           UNION ALL SELECT \'\', \'\', toString(generateUUIDv4()), \'\'
           UNION ALL SELECT \'\', account_id, toString(max(t.changed_at)), \'\' FROM {database}.ad_units AS t GROUP BY account_id
           SETTINGS output_format_json_escape_forward_slashes = 0'
    INVALIDATE_QUERY 'SELECT max(version) FROM {database}.ad_units'
))
LAYOUT(COMPLEX_KEY_HASHED())
LIFETIME(MIN 30 MAX 60);

-- cluster: on every node
CREATE OR REPLACE DICTIONARY site_names (account_id String, site_id String, name String, name_json String)
PRIMARY KEY account_id, site_id
SOURCE(CLICKHOUSE(
    USER '{user}' PASSWORD '{password}' DB '{database}'
    QUERY 'SELECT account_id, site_id, name, toJSONString(name) AS name_json FROM {database}.sites FINAL
           UNION ALL SELECT \'\', \'\', toString(generateUUIDv4()), \'\'
           UNION ALL SELECT \'\', account_id, toString(max(t.changed_at)), \'\' FROM {database}.sites AS t GROUP BY account_id
           SETTINGS output_format_json_escape_forward_slashes = 0'
    INVALIDATE_QUERY 'SELECT max(version) FROM {database}.sites'
))
LAYOUT(COMPLEX_KEY_HASHED())
LIFETIME(MIN 30 MAX 60);

-- A report of changed days also depends on which days those are.
-- cluster: by name
CREATE OR REPLACE VIEW store_state AS
SELECT
    database,
    table AS name,
    partition_id AS partition,
    splitByChar('/', path)[-3] AS folder,
    min(min_date) AS first_day,
    max(max_date) AS last_day,
    concat(toString(max(max_block_number)), ' ',
        toString(sum(toUInt64OrZero(splitByChar('_', p.name)[5]) * (max_block_number - min_block_number + 1)))) AS state
FROM system.parts AS p
WHERE active AND (endsWith(table, '_date') OR endsWith(table, '_changes') OR table IN ('confirmations', 'migrations'))
GROUP BY database, table, partition_id, folder;
