-- What reports are read from, told by metadata alone, so that answers can be kept as long as they are true. A name
-- dictionary carries, under the key ('', ''), which no account has, an id of its own for each time that it was read.
-- cluster: on every node
CREATE OR REPLACE DICTIONARY campaign_names (account_id String, campaign_id String, name String, name_json String)
PRIMARY KEY account_id, campaign_id
SOURCE(CLICKHOUSE(
    USER '{user}' PASSWORD '{password}' DB '{database}'
    QUERY 'SELECT account_id, campaign_id, name, toJSONString(name) AS name_json FROM {database}.campaigns FINAL
           UNION ALL SELECT \'\', \'\', toString(generateUUIDv4()), \'\'
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
           SETTINGS output_format_json_escape_forward_slashes = 0'
    INVALIDATE_QUERY 'SELECT max(version) FROM {database}.sites'
))
LAYOUT(COMPLEX_KEY_HASHED())
LIFETIME(MIN 30 MAX 60);

-- One row for each partition of the rollups and of the confirmations. `state` changes with every insert, with every part
-- that a mutation changes, and with a replaced partition: block numbers only grow, and the fifth piece of a part's name
-- is its latest mutation. Merges change it only where block numbers are missing. The folder changes when tables are
-- exchanged. `migrations` is there so that each node has a row.
-- cluster: by name
CREATE VIEW IF NOT EXISTS store_state AS
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
WHERE active AND (endsWith(table, '_date') OR table IN ('confirmations', 'migrations'))
GROUP BY database, table, partition_id, folder;
