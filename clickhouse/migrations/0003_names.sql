-- Names of ids, shown in reports. The last one loaded wins: version is the load time plus the line number in
-- nanoseconds, so the order of lines within one file counts too.
-- Read through dictionaries: as fast as a join, and a dictionary keeps the order of a streamed report, which
-- a join does not promise. They reload after a load of names, and within a minute on any other node.
-- cluster: on every node
CREATE TABLE IF NOT EXISTS campaigns
(
    account_id String,
    campaign_id String,
    name String,
    version DateTime64(9, 'UTC'),
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
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id),
    CONSTRAINT site_id CHECK lengthUTF8(site_id) BETWEEN 1 AND 128 AND isValidUTF8(site_id),
    CONSTRAINT name CHECK lengthUTF8(name) BETWEEN 1 AND 1024 AND isValidUTF8(name)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account_id, site_id);

-- cluster: on every node
CREATE DICTIONARY IF NOT EXISTS campaign_names (account_id String, campaign_id String, name String)
PRIMARY KEY account_id, campaign_id
SOURCE(CLICKHOUSE(
    USER '{user}' PASSWORD '{password}' DB '{database}'
    QUERY 'SELECT account_id, campaign_id, name FROM {database}.campaigns FINAL'
    INVALIDATE_QUERY 'SELECT max(version) FROM {database}.campaigns'
))
LAYOUT(COMPLEX_KEY_HASHED())
LIFETIME(MIN 30 MAX 60);

-- cluster: on every node
CREATE DICTIONARY IF NOT EXISTS creative_headlines (account_id String, creative_id String, headline String)
PRIMARY KEY account_id, creative_id
SOURCE(CLICKHOUSE(
    USER '{user}' PASSWORD '{password}' DB '{database}'
    QUERY 'SELECT account_id, creative_id, headline FROM {database}.creatives FINAL'
    INVALIDATE_QUERY 'SELECT max(version) FROM {database}.creatives'
))
LAYOUT(COMPLEX_KEY_HASHED())
LIFETIME(MIN 30 MAX 60);

-- cluster: on every node
CREATE DICTIONARY IF NOT EXISTS ad_unit_names (account_id String, ad_unit_id String, name String)
PRIMARY KEY account_id, ad_unit_id
SOURCE(CLICKHOUSE(
    USER '{user}' PASSWORD '{password}' DB '{database}'
    QUERY 'SELECT account_id, ad_unit_id, name FROM {database}.ad_units FINAL'
    INVALIDATE_QUERY 'SELECT max(version) FROM {database}.ad_units'
))
LAYOUT(COMPLEX_KEY_HASHED())
LIFETIME(MIN 30 MAX 60);

-- cluster: on every node
CREATE DICTIONARY IF NOT EXISTS site_names (account_id String, site_id String, name String)
PRIMARY KEY account_id, site_id
SOURCE(CLICKHOUSE(
    USER '{user}' PASSWORD '{password}' DB '{database}'
    QUERY 'SELECT account_id, site_id, name FROM {database}.sites FINAL'
    INVALIDATE_QUERY 'SELECT max(version) FROM {database}.sites'
))
LAYOUT(COMPLEX_KEY_HASHED())
LIFETIME(MIN 30 MAX 60);
