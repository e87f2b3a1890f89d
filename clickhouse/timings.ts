/**
 * Times that are right only together: how long one process goes on with what it knew, and how long another therefore
 * waits. All processes on a store must agree on them. `test/clickhouse/timings.test.ts` compares them with the schema.
 */

/** Services read tokens, limits and placements again this often. */
export const refreshMs = 1_500;

/** The promise to operators: after this long no service accepts a revoked token or applies an old limit. */
export const accountsFollowWithinMs = 5_000;
/** A service does not trust an older copy of tokens and limits; the rest is for the request that is under way. */
export const accountsMaxAgeMs = accountsFollowWithinMs - 500;

/** A service does not trust an older list of the accounts that lie on several shards: it then asks all shards. */
export const placementsMaxAgeMs = 4_000;
/** `place` waits this long before events of an account go to another shard: every service asks all shards by then. */
export const placementsFollowWithinMs = placementsMaxAgeMs + 2_000;

/** A process asks again after this long which nodes the cluster has, and over how many shards accounts are hashed. */
export const layoutMaxAgeMs = 3_000;
/** After this long every process knows of a shard that was added. Services keep the number of shards with the placements. */
export const layoutFollowsWithinMs = layoutMaxAgeMs + placementsFollowWithinMs;

/** A load shows this often that it runs. */
export const heartbeatMs = 3_000;
/** A load that has been silent for this long counts as dead. */
export const deadAfterMs = 5 * heartbeatMs;
/** A load that has been silent for this long has to find out whether others took it for dead. */
export const lapsedAfterMs = (deadAfterMs * 2) / 3;
/** A load that waits for another one looks this often whether it has ended. */
export const loadPollMs = 250;

/** Longest time after which a server reads a dictionary of names again: its `LIFETIME` in the schema. */
const dictionaryLifetimeSeconds = 60;
/** By then every server shows a changed name, also one that the loader of the names did not reach. */
export const namesFollowWithinSeconds = dictionaryLifetimeSeconds + 30;

/** ClickHouse ends a report at its time limit; a service that hears nothing of it waits so much longer before it gives up. */
export const limitToldWithinMs = 5_000;

/** A timer of Node.js may be early by this much. */
export const earlyTimerMs = 5;
/** 24 days: a longer timer of Node.js fires at once. */
export const longestTimerSeconds = 2_073_600;

/** Inserted parts of a table that ClickHouse recognises when they are sent again: the schema sets it on each table. */
const deduplicationWindow = 10_000;
/** So many parts may follow before a chunk that is sent again counts as forgotten. A chunk makes one for each month. */
export const rememberedParts = deduplicationWindow / 2;
