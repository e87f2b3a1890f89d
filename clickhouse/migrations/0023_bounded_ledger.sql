-- The ledger is kept for ever, so nothing may have to read all of it: of ten million loads and chunks only what is open is
-- of interest, and what is asked by name.

-- Loads that were heard of lately, and those that did not end well. FINAL goes by both.
ALTER TABLE loads
    ADD INDEX IF NOT EXISTS heard_of version TYPE minmax GRANULARITY 1,
    ADD INDEX IF NOT EXISTS in_state state TYPE set(4) GRANULARITY 1;

ALTER TABLE loads MATERIALIZE INDEX heard_of;

ALTER TABLE loads MATERIALIZE INDEX in_state;

-- A copy that an interrupted run has left behind.
DROP TABLE IF EXISTS load_chunks_bounded SYNC;

-- Names are spread evenly over the key, so that looking up one of them reads a granule: 256 rows, not 8,192. A thousand of
-- ten million were 5.5 million rows, and are 257,000. Claims that nobody has completed stand out by the index.
-- cluster: by head
CREATE TABLE IF NOT EXISTS load_chunks_bounded
(
    head FixedString(32),
    chunk String,
    load_id String,
    content SimpleAggregateFunction(max, String),
    bytes SimpleAggregateFunction(max, UInt64),
    records SimpleAggregateFunction(max, UInt64),
    rows SimpleAggregateFunction(max, UInt64),
    rejected_rows SimpleAggregateFunction(max, UInt64),
    duplicate_rows SimpleAggregateFunction(max, UInt64),
    left_out_rows SimpleAggregateFunction(max, UInt64),
    sent_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    loaded_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    INDEX in_doubt loaded_at TYPE minmax GRANULARITY 1
)
ENGINE = AggregatingMergeTree
ORDER BY (head, chunk, load_id)
SETTINGS index_granularity = 256;

INSERT INTO load_chunks_bounded SELECT * FROM load_chunks;

EXCHANGE TABLES load_chunks_bounded AND load_chunks;

DROP TABLE IF EXISTS load_chunks_bounded SYNC;

-- cluster: only, on every node
DROP TABLE IF EXISTS load_chunks_bounded SYNC;

-- Names have two texts each. With one table of keys for both, a name of 30 characters takes 169 bytes of memory instead of
-- 434: COMPLEX_KEY_HASHED has the keys once for each text.
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
LAYOUT(COMPLEX_KEY_HASHED_ARRAY())
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
LAYOUT(COMPLEX_KEY_HASHED_ARRAY())
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
LAYOUT(COMPLEX_KEY_HASHED_ARRAY())
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
LAYOUT(COMPLEX_KEY_HASHED_ARRAY())
LIFETIME(MIN 30 MAX 60);
