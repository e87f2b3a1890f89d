-- A token may open the reports of one family only. An advertiser and a publisher can have the same id, and then are one
-- account. Empty: of every family, as every token before.
-- cluster: on every node
ALTER TABLE tokens
    ADD COLUMN IF NOT EXISTS family LowCardinality(String) AFTER account_id;
