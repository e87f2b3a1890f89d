-- What followers (adtally ingest events --follow) have read to its end, so that they need not read it again at each look. It
-- saves reading and nothing else: what counts is in load_chunks. After a load was taken back all of it is read once more.
-- Sort key: a look asks for the names between the first and the last that it has found.
-- cluster: by name
CREATE TABLE IF NOT EXISTS followed_files
(
    -- How columns are read; the same file read in another way is another one.
    reading String,
    -- A path or the address of an object.
    name String,
    -- The ETag of an object; of a file its size, place and times.
    version String,
    -- Empty where an earlier load had all of it.
    load_id String,
    modified_at DateTime64(3, 'UTC'),
    -- When the look began in which it was found, by the clock of the store.
    looked_at DateTime64(6, 'UTC'),
    loaded_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(looked_at)
ORDER BY (reading, name);
