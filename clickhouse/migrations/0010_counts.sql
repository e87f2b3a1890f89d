-- An event is what it adds: four counts and two amounts as columns, so that a view is a plain sum, and one record may
-- carry several counts, as nearly every export has them. `event_type` and `quantity` become a way of a record to say
-- one of them. Every statement can be repeated from the start, also when a run was interrupted between any two.

-- Rows that are there: their counts as they were written. Filled in by the mutation, then kept without the rule.
ALTER TABLE events
    ADD COLUMN IF NOT EXISTS ad_requests UInt64 DEFAULT if(event_type = 'ad_request', quantity, 0) AFTER device,
    ADD COLUMN IF NOT EXISTS impressions UInt64 DEFAULT if(event_type = 'impression', quantity, 0) AFTER ad_requests,
    ADD COLUMN IF NOT EXISTS referrals UInt64 DEFAULT if(event_type = 'referral', quantity, 0) AFTER impressions,
    ADD COLUMN IF NOT EXISTS conversions UInt64 DEFAULT if(event_type = 'conversion', quantity, 0) AFTER referrals;

ALTER TABLE events
    UPDATE ad_requests = ad_requests, impressions = impressions, referrals = referrals, conversions = conversions WHERE true
    SETTINGS mutations_sync = 2;

ALTER TABLE campaigns_device_creative_date_view MODIFY QUERY
SELECT advertiser_id AS account_id, day, campaign_id, device, creative_id, sum(e.impressions) AS impressions, sum(e.conversions) AS conversions, sum(e.referrals) AS referrals, sum(e.spend) AS spent, maxIf(loaded_at, spend != 0 AND NOT confirmed) AS unconfirmed_at
FROM events AS e WHERE advertiser_id != ''
GROUP BY account_id, day, campaign_id, device, creative_id;

-- event_id is optional now: without one a record is told apart by the bytes of its chunk.
ALTER TABLE events
    MODIFY COLUMN ad_requests UInt64 DEFAULT 0,
    MODIFY COLUMN impressions UInt64 DEFAULT 0,
    MODIFY COLUMN referrals UInt64 DEFAULT 0,
    MODIFY COLUMN conversions UInt64 DEFAULT 0,
    DROP CONSTRAINT IF EXISTS event_id,
    DROP CONSTRAINT IF EXISTS event_type,
    DROP CONSTRAINT IF EXISTS quantity;

-- The view of the publishers' side is made again, because in a cluster the table that it reads is.
DROP VIEW IF EXISTS ad_units_device_site_date_view SYNC;

-- cluster: by advertiser
ALTER TABLE events
    DROP COLUMN IF EXISTS event_type,
    DROP COLUMN IF EXISTS quantity,
    ADD CONSTRAINT IF NOT EXISTS event_id_text CHECK lengthUTF8(event_id) <= 64 AND isValidUTF8(event_id);

-- In a cluster: a Null table cannot lose a constraint.
DROP TABLE IF EXISTS publisher_events SYNC;

-- cluster: only, on every node
DROP TABLE IF EXISTS publisher_events SYNC;

-- cluster: only, by publisher
CREATE TABLE IF NOT EXISTS publisher_events AS events
ENGINE = Null;

CREATE MATERIALIZED VIEW IF NOT EXISTS ad_units_device_site_date_view TO ad_units_device_site_date AS
SELECT publisher_id AS account_id, day, ad_unit_id, device, site_id, sum(e.revenue) AS estimated_revenue, sum(e.ad_requests) AS ad_requests, sum(e.impressions) AS impressions, sum(e.referrals) AS referrals, maxIf(loaded_at, revenue != 0 AND NOT confirmed) AS unconfirmed_at
FROM {publisher_events} AS e WHERE publisher_id != ''
GROUP BY account_id, day, ad_unit_id, device, site_id;
