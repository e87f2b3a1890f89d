import { Redis } from 'ioredis';
import type { Logger } from 'pino';

const alone = 'this process limits requests by itself';
/** These answers to SELECT stay until somebody changes REDIS_URL or Redis; other errors may pass. */
const refusedDatabase = /^(ERR .*(DB index|SELECT)|NOPERM )/i;

/**
 * The Redis that shares request limits between processes; logs once when it fails and once when it is back.
 *
 * It is not connected yet: a process that is busy for half a second as it connects, as one that starts may be, would
 * find the answers of Redis late and take it for gone.
 */
export function openRedis(url: string, log: Logger): Redis {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 1_000,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 500,
    // A Redis that hangs fails as a whole, so that not every request waits for the timeout of its own command.
    socketTimeout: 1_000,
  });
  let failing = false;
  redis.on('error', (err: Error & { command?: { name: string } }) => {
    // The client would go on in database 0, which another installation may count in.
    if (err.command?.name === 'select' && refusedDatabase.test(err.message)) {
      log.error(
        `REDIS_URL names a database that Redis refuses (${err.message}): ${alone} until it is started with another`,
      );
      // What else fails comes of that.
      failing = true;
      return redis.disconnect();
    }
    if (!failing) log.warn({ err }, `Redis fails: ${alone}`);
    failing = true;
  });
  redis.on('ready', () => {
    if (failing) log.info('Redis is back: limits are shared again');
    failing = false;
  });
  return redis;
}
