import {
  GenericContainer,
  getContainerRuntimeClient,
  Network,
  type StartedTestContainer,
  Wait,
} from 'testcontainers';
import { type Cluster, waitForPing } from '../../bench/cluster/local-cluster.ts';
import type { Server } from '../../clickhouse/client.ts';

const image = 'clickhouse/clickhouse-server:26.7';
const keeperImage = 'clickhouse/clickhouse-keeper:26.7';
const name = 'adtally';
const places = ['1-1', '1-2', '2-1', '2-2'] as const;

/** Two shards of two replicas and a Keeper, in containers that this machine reaches by their addresses (Linux). */
export async function startContainers(): Promise<Cluster> {
  const runtime = await getContainerRuntimeClient();
  const network = await new Network().start();
  const keeper = await new GenericContainer(keeperImage)
    .withNetwork(network)
    .withNetworkAliases('keeper')
    .withCopyContentToContainer([{ content: keeperXml, target: '/etc/clickhouse-keeper/keeper_config.xml' }])
    .withWaitStrategy(Wait.forListeningPorts())
    .withExposedPorts(9181)
    .start();
  const nodes = await Promise.all(
    places.map((place) =>
      new GenericContainer(image)
        .withNetwork(network)
        .withNetworkAliases(`clickhouse-${place}`)
        .withEnvironment({ CLICKHOUSE_SKIP_USER_SETUP: '1' })
        .withCopyContentToContainer([
          { content: nodeXml(place), target: '/etc/clickhouse-server/config.d/node.xml' },
        ])
        .withExposedPorts(8123)
        .withWaitStrategy(Wait.forHttp('/ping', 8123))
        .start(),
    ),
  );
  const server = (node: StartedTestContainer): Server => ({
    url: `http://${node.getIpAddress(network.getName())}:8123`,
    user: 'default',
    password: '',
  });
  const servers = serversXml(nodes.map((node) => node.getIpAddress(network.getName())));
  for (const node of nodes) {
    await node.copyContentToContainer([
      { content: servers, target: '/etc/clickhouse-server/config.d/servers.xml' },
    ]);
    const answer = await fetch(server(node).url, { method: 'POST', body: 'SYSTEM RELOAD CONFIG' });
    if (!answer.ok) throw new Error(await answer.text());
  }
  return {
    name,
    nodes: nodes.map((node) => {
      const container = runtime.container.getById(node.getId());
      return {
        ...server(node),
        kill: async () => void (await container.kill()),
        restart: async () => {
          await container.start();
          await waitForPing(server(node));
        },
      };
    }),
    answers: async () => {},
    resize: () => Promise.reject(new Error('these containers are not resized')),
    stop: async () => {
      await Promise.all([...nodes, keeper].map((container) => container.stop()));
      await network.stop();
    },
  };
}

function nodeXml(place: string): string {
  const [shard, replica] = place.split('-');
  return `<clickhouse>
    <macros><shard>${shard}</shard><replica>${replica}</replica></macros>
    <interserver_http_host>clickhouse-${place}</interserver_http_host>
    <zookeeper><node><host>keeper</host><port>9181</port></node></zookeeper>
  </clickhouse>`;
}

function serversXml(addresses: readonly string[]): string {
  const replica = (n: number) => `<replica><host>${addresses[n]}</host><port>9000</port></replica>`;
  const shard = (n: number) =>
    `<shard><internal_replication>true</internal_replication>${replica(n)}${replica(n + 1)}</shard>`;
  return `<clickhouse><remote_servers><${name}>${shard(0)}${shard(2)}</${name}></remote_servers></clickhouse>`;
}

const keeperXml = `<clickhouse>
  <listen_host>0.0.0.0</listen_host>
  <keeper_server>
    <tcp_port>9181</tcp_port>
    <server_id>1</server_id>
    <log_storage_path>/var/lib/clickhouse-keeper/log</log_storage_path>
    <snapshot_storage_path>/var/lib/clickhouse-keeper/snapshots</snapshot_storage_path>
    <raft_configuration><server><id>1</id><hostname>keeper</hostname><port>9234</port></server></raft_configuration>
  </keeper_server>
</clickhouse>`;
