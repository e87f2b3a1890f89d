-- Login tokens. Only the sha256 of a token is stored; the latest version of an id is its state.
-- cluster: on every node
CREATE TABLE IF NOT EXISTS tokens
(
    id String,
    account_id String,
    -- `report` opens the reports of its account; `ingest` only sends events, and `operator` only runs operations, each under
    -- the name in account_id.
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

-- Who changed what, and when: operations of the command line and of operators' programs. Written before the change and again
-- after it, so that no change is missing here; the later state of an id counts. Tokens are never in it.
-- cluster: by id
CREATE TABLE IF NOT EXISTS audit
(
    -- Begins with the time.
    id String,
    at DateTime64(3, 'UTC'),
    -- The name of an operator token, or user@host of the command line.
    who String,
    -- The id of that token; empty: the command line.
    token String,
    operation LowCardinality(String),
    -- JSON: what was asked for, and what came of it.
    input String,
    outcome String,
    error String,
    -- One that stays begun was interrupted: it may be done, or a part of it.
    state Enum8('begun' = 1, 'failed' = 2, 'done' = 3),
    version UInt8 DEFAULT toUInt8(state)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id;

-- When a person who signs in at a provider last signed out everywhere: older sessions are refused. Only the latest version
-- of a person counts.
-- cluster: on every node
CREATE TABLE IF NOT EXISTS sign_outs
(
    person String,
    version DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY person;
