import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, vi } from 'vitest';
import type { Engine, Ports } from '../../clickhouse/embedded/launch.ts';
import { launch } from './compiled.ts';

export interface ClusterNode {
  readonly url: string;
  /** Ends it as a power cut would, and resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again on the same ports and files; resolves when it answers. */
  restart(): Promise<void>;
}

/** Several ClickHouse servers on loopback, which know each other as the cluster `adtally`, a shard each. */
export interface Cluster {
  readonly name: string;
  readonly nodes: readonly ClusterNode[];
  /** Resolves when every server answers. */
  answers(): Promise<void>;
  /** Lets the servers know the first `shards` of them as the cluster, and starts them again. */
  resize(shards: number): Promise<void>;
  stop(): Promise<void>;
}

const config = fileURLToPath(new URL('../../clickhouse/config/embedded.xml', import.meta.url));
const name = 'adtally';

export interface ClusterOptions {
  /** How many of the servers the cluster has at first. */
  readonly known?: number;
  /** How often each server is named as a replica of its shard. */
  readonly replicas?: number;
  /** Proves the servers to each other, so that statements run on every one as the user who asked. */
  readonly secret?: string;
  /** More configuration of every server. */
  readonly more?: string;
}

export async function startCluster(
  size: number,
  { known = size, ...options }: ClusterOptions = {},
): Promise<Cluster> {
  const home = mkdtempSync(join(tmpdir(), 'adtally-cluster-'));
  const ports = await freePorts(size);
  const folders = ports.map((_, n) => join(home, `${n + 1}`));
  const describe = (shards: number) => {
    const servers = clusterXml(ports.slice(0, shards), options);
    for (const folder of folders) writeFileSync(join(folder, 'embedded.d', 'cluster.xml'), servers);
  };
  for (const folder of folders) {
    mkdirSync(join(folder, 'embedded.d'), { recursive: true });
    copyFileSync(config, join(folder, 'embedded.xml'));
  }
  describe(known);
  const servers = await Promise.all(folders.map((folder, n) => startServer(folder, ports[n] as Ports)));
  return {
    name,
    nodes: servers,
    answers: async () => {
      for (const { url } of servers) await untilItAnswers(url);
    },
    resize: async (shards) => {
      describe(shards);
      // The embedded server reads its configuration at the start only.
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

/** A cluster for the tests of one file. */
export function useCluster(size: number, options: ClusterOptions = {}): Cluster {
  // Several servers share the cores of one machine.
  vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });
  let cluster: Cluster | undefined;
  beforeAll(async () => {
    cluster = await startCluster(size, options);
  });
  afterAll(() => cluster?.stop());
  const get = (): Cluster => {
    if (!cluster) throw new Error('the cluster is there from beforeAll on');
    return cluster;
  };
  return {
    name,
    get nodes() {
      return get().nodes;
    },
    answers: () => get().answers(),
    resize: (shards) => get().resize(shards),
    stop: () => get().stop(),
  };
}

async function startServer(folder: string, ports: Ports): Promise<ClusterNode & { stop(): Promise<void> }> {
  const { launchEngine } = await launch();
  const start = async (): Promise<Engine> => {
    const started = launchEngine(folder, ports, join(folder, 'embedded.xml'));
    await started.ready;
    return started;
  };
  let engine = await start();
  let wanted = true;
  // The embedded engine can abort where a server would only log that a peer has gone in the middle of an answer.
  // Whoever runs a server has it started again; so does this.
  const watch = (): void => {
    void engine.exited.then(async (how) => {
      if (!wanted) return;
      process.stderr.write(`a server of the cluster ended by itself (${how}): ${await engine.lastWords}\n`);
      engine = await start();
      watch();
    });
  };
  watch();
  return {
    url: `http://127.0.0.1:${ports.http}`,
    kill: async () => {
      wanted = false;
      process.kill(engine.pid, 'SIGKILL');
      await engine.exited;
    },
    restart: async () => {
      engine = await start();
      wanted = true;
      watch();
    },
    stop: async () => {
      wanted = false;
      await engine.stop();
    },
  };
}

export async function untilItAnswers(url: string): Promise<void> {
  for (;;) {
    const answers = await fetch(`${url}/ping`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (answers) return;
    await delay(50);
  }
}

function clusterXml(ports: readonly Ports[], { replicas = 1, secret, more = '' }: ClusterOptions): string {
  const shards = ports.map(({ tcp }) => {
    const replica = `<replica><host>127.0.0.1</host><port>${tcp}</port></replica>`;
    return `<shard><internal_replication>true</internal_replication>${replica.repeat(replicas)}</shard>`;
  });
  const proof = secret === undefined ? '' : `<secret>${secret}</secret>`;
  return `<clickhouse><remote_servers><${name}>${proof}${shards.join('')}</${name}></remote_servers>${more}</clickhouse>\n`;
}

/** All are taken before the first is given back, so that no two are the same. */
async function freePorts(size: number): Promise<Ports[]> {
  const servers = Array.from({ length: 2 * size }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const numbers = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return address.port;
  });
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return Array.from({ length: size }, (_, n) => ({
    http: numbers[2 * n] ?? 0,
    tcp: numbers[2 * n + 1] ?? 0,
  }));
}
