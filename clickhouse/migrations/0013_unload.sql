-- A load can be taken back, and then its events, and what the ledger knew of them, are gone.
-- replay_id: the replay that a load made or finished, so that taking it back opens its rejected rows again.
-- cluster: by load_id
ALTER TABLE loads
    MODIFY COLUMN state Enum8('running' = 1, 'failed' = 2, 'loaded' = 3, 'unloaded' = 4),
    ADD COLUMN IF NOT EXISTS replay_id String AFTER chunks;
