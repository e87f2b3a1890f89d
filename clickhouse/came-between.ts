/** SQL of the load that loaded a chunk, or, if none has said so yet, the last that tried, of its rows in `load_chunks`. */
export const loadOfChunk = 'max(tuple(toUInt64(c.loaded_at) > 0, c.sent_at, c.load_id)).3';

/**
 * SQL of the times between which reports came to show a chunk, of its rows in `load_chunks`: when a load that was not taken
 * back since claimed it first, and when it was known to be complete, which is the epoch until then.
 */
export const cameBetween = (inDatabase = ''): string =>
  `minIf(c.sent_at, toUInt64(c.sent_at) > 0 AND c.load_id GLOBAL NOT IN (
     SELECT load_id FROM ${inDatabase}loads FINAL WHERE state = 'unloaded')) AS came_after,
   minIf(c.loaded_at, toUInt64(c.loaded_at) > 0) AS came_by`;
