import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Server } from '../../clickhouse/client.ts';
import { type Access, newAccess } from '../../clickhouse/embedded/access.ts';
import { type Engine, launchEngine, type Ports } from '../../clickhouse/embedded/launch.ts';
import { pollFor } from '../../clickhouse/poll.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Relay } from './relay.ts';

/** One server of a local cluster, and a user who may do everything. */
export interface ClusterServer extends Server {
  /** Kills the process, as a power cut would, and resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again on the same ports and files; resolves when it answers. */
  restart(): Promise<void>;
}

/** Several ClickHouse servers on loopback that form the cluster `adtally`, one shard each. For tests and benchmarks. */
export interface Cluster {
  readonly name: string;
  readonly nodes: readonly ClusterServer[];
  /** Resolves when every server answers and reaches all servers of the cluster. */
  answers(): Promise<void>;
  /** Makes the first `shards` servers the cluster and restarts all of them. */
  resize(shards: number): Promise<void>;
  stop(): Promise<void>;
}

const config = fileURLToPath(new URL('../../clickhouse/config/embedded.xml', import.meta.url));
/** Files that are merged into it; none where nobody has put any. */
const added = fileURLToPath(new URL('../../clickhouse/config/embedded.d', import.meta.url));
export const clusterName = 'adtally';

/** On a busy machine a server answers late: the others wait 20 s for a connection, and ask no second server meanwhile. */
const patience = ['default', 'reporter'].map(
  (profile) =>
    `<${profile}><connect_timeout_with_failover_ms>20000</connect_timeout_with_failover_ms><use_hedged_requests>0</use_hedged_requests></${profile}>`,
);

/** `peers`: where its native port is reached by the others. */
type ServerPorts = Ports & { readonly peers: number };

export interface ClusterOptions {
  /** How many of the servers belong to the cluster at first; by default all. */
  readonly known?: number;
  /** How many times each server is listed as a replica of its own shard. */
  readonly replicas?: number;
  /** Shared secret of the servers; with it a statement runs on all of them as the user who sent it, not as adtally. */
  readonly secret?: string;
  /** XML to add to the configuration of every server. */
  readonly more?: string;
}

/** Starts `size` servers and resolves when all of them answer; `stop()` removes their files. */
export async function startCluster(
  size: number,
  { known = size, ...options }: ClusterOptions = {},
): Promise<Cluster> {
  const home = mkdtempSync(join(tmpdir(), 'adtally-cluster-'));
  const numbers = await freePorts(3 * size);
  const ports = Array.from({ length: size }, (_, n) => ({
    http: numbers[3 * n] ?? 0,
    tcp: numbers[3 * n + 1] ?? 0,
    peers: numbers[3 * n + 2] ?? 0,
  }));
  const folders = ports.map((_, n) => join(home, `${n + 1}`));
  const access = newAccess();
  const describe = (shards: number) => {
    const servers = clusterXml(ports.slice(0, shards), access, options);
    for (const folder of folders) writeFileSync(join(folder, 'embedded.d', 'cluster.xml'), servers);
  };
  for (const folder of folders) {
    mkdirSync(join(folder, 'embedded.d'), { recursive: true });
    copyFileSync(config, join(folder, 'embedded.xml'));
    if (existsSync(added)) cpSync(added, join(folder, 'embedded.d'), { recursive: true });
    const profiles = `<clickhouse><profiles>${patience.join('')}</profiles></clickhouse>\n`;
    writeFileSync(join(folder, 'embedded.d', 'patience.xml'), profiles);
  }
  describe(known);
  const servers = await Promise.all(
    folders.map((folder, n) => startServer(folder, ports[n] as ServerPorts, access)),
  );
  return {
    name: clusterName,
    nodes: servers,
    answers: async () => {
      for (const server of servers) await pollFor(() => reachesAll(server), { pollMs: 50 });
    },
    resize: async (shards) => {
      describe(shards);
      // The embedded server reads its configuration only when it starts.
      for (const server of servers) {
        await server.stop();
        await server.restart();
      }
    },
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function startServer(
  folder: string,
  ports: ServerPorts,
  access: Access,
): Promise<ClusterServer & { stop(): Promise<void> }> {
  const relay = new Relay(ports.peers, ports.tcp);
  let stopping = false;
  const start = async (): Promise<Engine> => {
    const started = launchEngine(folder, {
      ports,
      access,
      databases: [],
      native: true,
      configFile: join(folder, 'embedded.xml'),
    });
    stopping = false;
    void started.exited.then(async (how) => {
      if (!stopping)
        process.stderr.write(`a server of the cluster ended (${how}): ${await started.lastWords}\n`);
    });
    await started.ready;
    await relay.open();
    return started;
  };
  let engine = await start();
  return {
    url: `http://127.0.0.1:${ports.http}`,
    user: 'adtally',
    password: access.passwords.adtally,
    kill: async () => {
      stopping = true;
      process.kill(engine.pid, 'SIGKILL');
      await engine.exited;
      await relay.close();
    },
    restart: async () => {
      engine = await start();
    },
    stop: async () => {
      stopping = true;
      await engine.stop();
      await relay.close();
    },
  };
}

const reachesAll = (server: Server): Promise<true | undefined> =>
  isOk(server, `/?query=${encodeURIComponent(`SELECT count() FROM cluster(${clusterName}, system.one)`)}`);

/** Resolves when the ClickHouse at `url` answers a ping of this user. */
export async function waitForPing(server: Server): Promise<void> {
  await pollFor(() => isOk(server, '/ping'), { pollMs: 50 });
}

async function isOk({ url, user, password }: Server, path: string): Promise<true | undefined> {
  const headers = { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` };
  try {
    const response = await fetch(`${url}${path}`, { headers });
    await response.arrayBuffer();
    return response.ok || undefined;
  } catch {
    return undefined;
  }
}

function clusterXml(
  ports: readonly ServerPorts[],
  { passwords }: Access,
  { replicas = 1, secret, more = '' }: ClusterOptions,
): string {
  const user = secret ? '' : `<user>adtally</user><password>${passwords.adtally}</password>`;
  const shards = ports.map(({ peers }) => {
    const replica = `<replica><host>127.0.0.1</host><port>${peers}</port>${user}</replica>`;
    return `<shard><internal_replication>true</internal_replication>${replica.repeat(replicas)}</shard>`;
  });
  const proof = secret === undefined ? '' : `<secret>${secret}</secret>`;
  return `<clickhouse><remote_servers><${clusterName}>${proof}${shards.join('')}</${clusterName}></remote_servers>${more}</clickhouse>\n`;
}
