-- Reports by mail. The latest version of an id counts.
-- cluster: by id
CREATE TABLE IF NOT EXISTS schedules
(
    id String,
    account_id String,
    -- As exports are named: campaigns/device_date.
    report String,
    -- JSON: the optional fields of the body of a report.
    body String,
    period LowCardinality(String),
    every LowCardinality(String),
    -- hh:mm in the time zone of the store.
    at String,
    recipients Array(String),
    attach LowCardinality(String),
    -- For how long a mail waits for its days to be final.
    wait_hours UInt16,
    -- The id of the token that opens the report: revoking it ends the mails. Empty: the sender makes one.
    token String,
    state Enum8('active' = 1, 'paused' = 2, 'removed' = 3),
    -- Of a mail: a language of the page, with a country or without.
    language String DEFAULT 'en-GB',
    -- Empty: the operator made it. Else the token or the person that made it for their account; recipients are then asked first.
    made_by String,
    -- What was due before is not sent.
    since DateTime64(3, 'UTC'),
    version DateTime64(6, 'UTC') DEFAULT now64(6),
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id;

-- Who wants no more mails of a schedule.
-- cluster: by schedule
CREATE TABLE IF NOT EXISTS unsubscribed
(
    schedule String,
    recipient String,
    at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (schedule, recipient);

-- Which mails were sent: one row for each attempt, written before it and again after it. The later state counts.
-- An attempt is taken under a token of the insert, so that of several senders the engine stores the row of one.
-- cluster: by schedule
CREATE TABLE IF NOT EXISTS mails
(
    schedule String,
    -- On which it is due.
    day Date,
    recipient String,
    attempt UInt16,
    -- The sender that has taken it.
    taker String,
    -- Taken, and nothing since: under way, or the sender has died and nobody knows whether it was sent; unknown: the mail server
    -- did not say whether it took it. Delayed: it was not sent, and is tried again. Refused: the mail server will not take it.
    state Enum8('taken' = 1, 'unknown' = 2, 'delayed' = 3, 'refused' = 4, 'sent' = 5),
    at DateTime64(3, 'UTC'),
    error String,
    version UInt8 DEFAULT toUInt8(state)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (schedule, day, recipient, attempt)
SETTINGS non_replicated_deduplication_window = 10000;

-- Who wants the mails of an account's own schedules, and since when; the later of a yes and a no counts. The column schedule
-- has 'account ACCOUNT', here for a yes, in unsubscribed for a no, and in mails, on the day 1970-01-01, for the question.
-- cluster: by schedule
CREATE TABLE IF NOT EXISTS agreed
(
    schedule String,
    recipient String,
    at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (schedule, recipient);
