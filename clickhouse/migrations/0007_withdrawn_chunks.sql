-- When a load began to withdraw what had arrived of a chunk and to send it under another name; the epoch if none
-- did. Whoever takes such a chunk over cannot rely on what the engine remembers of either name.
-- cluster: by head
ALTER TABLE load_chunks ADD COLUMN IF NOT EXISTS withdrawn_at SimpleAggregateFunction(max, DateTime64(6, 'UTC'));
