-- Names of ids, shown in reports. The last one loaded wins: version is the load time plus the line number in
-- nanoseconds, so the order of lines within one file counts too.
-- changed_at: when a name last became another one; version grows also when the same list is loaded again.
-- Read through dictionaries: as fast as a join, and a dictionary keeps the order of a streamed report, which
-- a join does not promise. They reload after a load of names, and within a minute on any other node.
-- cluster: on every node
CREATE TABLE IF NOT EXISTS campaigns
(
    account_id String,
    campaign_id String,
    name String,
    version DateTime64(9, 'UTC'),
    changed_at DateTime64(6, 'UTC') DEFAULT version,
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id),
    CONSTRAINT campaign_id CHECK lengthUTF8(campaign_id) BETWEEN 1 AND 128 AND isValidUTF8(campaign_id),
    CONSTRAINT name CHECK lengthUTF8(name) BETWEEN 1 AND 1024 AND isValidUTF8(name)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account_id, campaign_id);

-- cluster: on every node
CREATE TABLE IF NOT EXISTS creatives
(
    account_id String,
    creative_id String,
    headline String,
    version DateTime64(9, 'UTC'),
    changed_at DateTime64(6, 'UTC') DEFAULT version,
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id),
    CONSTRAINT creative_id CHECK lengthUTF8(creative_id) BETWEEN 1 AND 128 AND isValidUTF8(creative_id),
    CONSTRAINT headline CHECK lengthUTF8(headline) BETWEEN 1 AND 1024 AND isValidUTF8(headline)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account_id, creative_id);

-- cluster: on every node
CREATE TABLE IF NOT EXISTS ad_units
(
    account_id String,
    ad_unit_id String,
    name String,
    version DateTime64(9, 'UTC'),
    changed_at DateTime64(6, 'UTC') DEFAULT version,
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id),
    CONSTRAINT ad_unit_id CHECK lengthUTF8(ad_unit_id) BETWEEN 1 AND 128 AND isValidUTF8(ad_unit_id),
    CONSTRAINT name CHECK lengthUTF8(name) BETWEEN 1 AND 1024 AND isValidUTF8(name)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account_id, ad_unit_id);

-- cluster: on every node
CREATE TABLE IF NOT EXISTS sites
(
    account_id String,
    site_id String,
    name String,
    version DateTime64(9, 'UTC'),
    changed_at DateTime64(6, 'UTC') DEFAULT version,
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id),
    CONSTRAINT site_id CHECK lengthUTF8(site_id) BETWEEN 1 AND 128 AND isValidUTF8(site_id),
    CONSTRAINT name CHECK lengthUTF8(name) BETWEEN 1 AND 1024 AND isValidUTF8(name)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account_id, site_id);

-- Names also as JSON text, in quotes: JSON reports copy them. Quoting them anew for each row took a sixth of the CPU of
-- the most granular report (328,500 rows: 253 and 210 ms); a dictionary does it once for each name that changes.
-- With one table of keys for both texts a name of 30 characters takes 169 bytes of memory; COMPLEX_KEY_HASHED, which has
-- the keys once for each text, takes 434.
-- Under the key ('', ''), which no account has, a dictionary carries an id of its own for each time that it was read, so
-- that answers can be kept as long as they are true. Under ('', account), which no name has, it says when a name of the
-- account last changed: that shows together with the names, and is read by those who may read these.
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
