-- Login tokens. Only the sha256 of a token is stored; the latest version of an id is its state.
-- cluster: on every node
CREATE TABLE IF NOT EXISTS tokens
(
    id String,
    account_id String,
    -- `report` opens the reports of its account; `ingest` only sends events, under the name in account_id.
    purpose LowCardinality(String) DEFAULT 'report',
    -- The one family whose reports it opens; empty: of every family. An advertiser and a publisher can have the same id,
    -- and then are one account.
    family LowCardinality(String),
    hash String,
    label String,
    created_at DateTime64(3, 'UTC'),
    expires_at Nullable(DateTime64(3, 'UTC')),
    revoked_at Nullable(DateTime64(3, 'UTC')),
    version DateTime64(6, 'UTC') DEFAULT now64(6),
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id;

-- How many requests an account may send in a window, where it is not the same as for all; the latest version of
-- an account counts. NULL: the same as for all again.
-- cluster: on every node
CREATE TABLE IF NOT EXISTS account_limits
(
    account_id String,
    requests Nullable(UInt32),
    version DateTime64(6, 'UTC') DEFAULT now64(6),
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id),
    CONSTRAINT requests CHECK ifNull(requests, 1) > 0
)
ENGINE = ReplacingMergeTree(version)
ORDER BY account_id;
