-- Months of accounts as they were closed: what was invoiced stays, whatever is loaded, renamed or pruned later.
--
-- The row of a close is written last, and only revisions that have one are read: what an interrupted close has left counts
-- for nothing, and the next close of the account removes it. The last row of an account and month is what `closed` means.
-- cluster: by account
CREATE TABLE IF NOT EXISTS closes
(
    account_id String,
    -- yyyymm
    month UInt32,
    -- sha256, in hex, of the canonical text of the close, which src/close/canonical-text.ts writes.
    revision String,
    -- What was closed before it; empty: nothing.
    previous String,
    closed_at DateTime64(6, 'UTC'),
    rows UInt64,
    -- Days whose money was unconfirmed then, by family.
    unconfirmed Array(Tuple(family String, day Date)),
    -- Rejected rows that were open then and may have been of the month.
    open_rejects UInt64,
    -- What a close says of itself, as docs/closing.md describes it: a line of JSON, and a line with the signature of the first if it
    -- was signed. Written with the close, because the loads that it is made of may be unloaded, replaced or pruned later.
    manifest String CODEC(ZSTD(1))
)
ENGINE = MergeTree
ORDER BY (account_id, month, closed_at);

-- The rows of the finest rollup, in its order, with the names of then in the columns of reports. Which revision a row is of is
-- part of its key: should rows of an interrupted close arrive after those of its repetition, they are one.
-- cluster: by account
CREATE TABLE IF NOT EXISTS campaigns_closed
(
    account_id String,
    revision String,
    day Date,
    campaign_id String,
    device LowCardinality(String),
    creative_id String,
    campaign String,
    creative_headline String,
    impressions UInt128,
    conversions UInt128,
    referrals UInt128,
    spent Decimal(38, 6)
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, campaign_id, device, creative_id, revision)
SETTINGS default_compression_codec = 'ZSTD(1)';

-- cluster: by account
CREATE TABLE IF NOT EXISTS ad_units_closed
(
    account_id String,
    revision String,
    day Date,
    ad_unit_id String,
    device LowCardinality(String),
    site_id String,
    ad_unit String,
    site String,
    estimated_revenue Decimal(38, 6),
    ad_requests UInt128,
    impressions UInt128,
    referrals UInt128
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (account_id, day, ad_unit_id, device, site_id, revision)
SETTINGS default_compression_codec = 'ZSTD(1)';
