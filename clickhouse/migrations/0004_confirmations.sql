-- The last confirmation of an account's revenue of a day. Money of that day that was loaded later and not
-- marked confirmed makes the day unconfirmed again, by comparison with unconfirmed_at of the rollups.
-- Sort key: a report reads one account and a range of days.
-- cluster: by account
CREATE TABLE IF NOT EXISTS confirmations
(
    account_id String,
    day Date,
    confirmed_at SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id),
    -- 1970-01-01 is the value of a missing field.
    CONSTRAINT day CHECK day > '1970-12-31'
)
ENGINE = AggregatingMergeTree
ORDER BY (account_id, day);
