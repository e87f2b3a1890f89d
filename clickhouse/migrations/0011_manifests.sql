-- What a close says of itself, as docs/closing.md describes it: a line of JSON, and a line with the signature of the first if it
-- was signed. Written with the close, because the loads that it is made of may be unloaded, replaced or pruned later. Empty for
-- what was closed by a version before it.
ALTER TABLE closes ADD COLUMN IF NOT EXISTS manifest String CODEC(ZSTD(1));
