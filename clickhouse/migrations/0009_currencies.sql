-- The currency of an account's money, a code of ISO 4217, where it is known; the latest version of an account counts. NULL: it is
-- not known any more.
-- cluster: on every node
CREATE TABLE IF NOT EXISTS account_currencies
(
    account_id String,
    currency Nullable(String),
    version DateTime64(6, 'UTC') DEFAULT now64(6),
    CONSTRAINT account_id CHECK lengthUTF8(account_id) BETWEEN 1 AND 128 AND isValidUTF8(account_id),
    CONSTRAINT currency CHECK currency IS NULL OR match(currency, '^[A-Z]{3}$')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY account_id;
