/** Holds the embedded ClickHouse of the DATA_DIR given: prints the lease, releases when its input ends. */
import { once } from 'node:events';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';

const [dataDir] = process.argv.slice(2);
if (dataDir === undefined) throw new Error('usage: embedded-holder DATA_DIR');

const { address, url, pid, release } = await acquireEmbedded(dataDir);
console.log(JSON.stringify({ address, url, pid }));
await once(process.stdin.resume(), 'end');
await release();
