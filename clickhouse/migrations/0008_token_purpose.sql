-- What a token is for: `report` opens the reports of its account, `ingest` only sends events, under the name in `account_id`.
ALTER TABLE tokens ADD COLUMN IF NOT EXISTS purpose LowCardinality(String) DEFAULT 'report' AFTER family;
