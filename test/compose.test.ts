import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

interface Service {
  readonly image: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly mem_limit?: string;
  readonly pids_limit?: number;
  readonly privileged?: boolean;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly command?: readonly string[];
  /** Null: as it is outside. */
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly networks: readonly string[] | Readonly<Record<string, { readonly ipv4_address: string }>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>;
}

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const files = ['docker-compose.yml', 'docker-compose.cluster.yml'];
const composed = (file: string): Compose => parse(read(file), { merge: true });
const services = files.flatMap((file) =>
  Object.entries(composed(file).services).map(([name, service]) => [`${name} of ${file}`, service] as const),
);
const networksOf = ({ networks }: Service) => (Array.isArray(networks) ? networks : Object.keys(networks));
/** They write beside their volumes. */
const writing = /^\$\{(CLICKHOUSE|KEEPER)_IMAGE:-/;

describe.each(services)('%s', (_, service) => {
  test('has no rights that it does not need, and a limit of memory and of processes', () => {
    expect(service).toMatchObject({
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      mem_limit: expect.stringMatching(/^(\$\{CLICKHOUSE_MEMORY:-)?\d+[mg]\}?$/),
      pids_limit: expect.any(Number),
    });
    expect(service.privileged).toBeUndefined();
    if (!writing.test(service.image)) expect(service.read_only).toBe(true);
    // The image of adtally says so itself.
    if (service.image !== 'adtally') expect(service.user).toMatch(/^(101:101|65534:65534|472:0|redis)$/);
    for (const volume of service.volumes ?? []) if (/^[.$]/.test(volume)) expect(volume).toMatch(/:ro$/);
  });

  test('is published to this machine alone, and its image can be pinned', () => {
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
    expect(service.image).toMatch(/^(adtally|\$\{[A-Z]+_IMAGE:-[\w/.-]+:v?\d[\w.-]*\})$/);
  });

  test('has no secret that is known: each is asked for', () => {
    const texts = [...Object.values(service.environment ?? {}), ...(service.command ?? [])];
    for (const [used = ''] of texts.join('\n').matchAll(/\$\{\w*(PASSWORD|SECRET)[^}]*\}/g))
      expect(used).toMatch(/:\?/);
  });
});

test.each(files)('%s keeps the stores off every network but their own', (file) => {
  const { networks } = composed(file);
  expect(networks.stores).toEqual({ internal: true });
  const inside = services.filter(
    ([name]) => name.endsWith(` ${file}`) && /clickhouse-|keeper-|clickhouse |redis /.test(name),
  );
  expect(inside.length).toBeGreaterThanOrEqual(2);
  for (const [name, service] of inside) expect([name, networksOf(service)]).toEqual([name, ['stores']]);
});

test('each ClickHouse is given the passwords that its users.xml reads', () => {
  const passwords = [...read('clickhouse/config/server/users.xml').matchAll(/from_env="(\w+)"/g)].map(
    ([, name]) => name,
  );
  expect(passwords.length).toBe(4);
  const servers = services.filter(([name]) => name.startsWith('clickhouse'));
  expect(servers.length).toBe(5);
  for (const [name, { environment = {} }] of servers)
    expect(Object.keys(environment), name).toEqual(expect.arrayContaining(passwords));
});

test.each(files)('what loads objects by %s reaches buckets, and has their keys and addresses', (file) => {
  const { cli, follow = cli } = composed(file).services;
  // The variables that `backup s3://…` reads, and the token of lent keys, which only loads take.
  const names = read('src/cli/store/s3-target.ts').match(/\bAWS_[A-Z_]+(_S3)?\b/g) ?? [];
  // Those of other stores, as the page of them has them.
  const others = read('docs/configuration.md').match(/`(GS|AZURE)_[A-Z_]+`/g) ?? [];
  const all = [...names, 'AWS_SESSION_TOKEN', ...others.map((name) => name.slice(1, -1))];
  const buckets = Object.fromEntries(all.map((name) => [name, null]));
  expect(Object.keys(buckets)).toHaveLength(10);
  for (const service of [cli, follow]) {
    if (!service) throw new Error('cli is in every file');
    expect(networksOf(service)).toEqual(['default', 'stores']);
    expect(service.environment).toMatchObject({ ...buckets, CLICKHOUSE_USER: 'adtally' });
  }
});

test('on the cluster the services believe their proxy, by its address, and tell callers no metrics', () => {
  const all = composed('docker-compose.cluster.yml').services;
  const networks = all.proxy?.networks;
  const address = networks && 'default' in networks ? networks.default?.ipv4_address : undefined;
  expect(address).toMatch(/^\$\{PROXY_ADDRESS:-[\d.]+\}$/);
  for (const name of ['adtally-1', 'adtally-2']) {
    expect(all[name]?.environment).toMatchObject({ TRUSTED_PROXIES: address, ADMIN_PORT: '9090' });
  }
});

test.each(files)('commands of %s run where migrate fails', (file) => {
  const { cli } = composed(file).services;
  const waitsFor = Object.keys(cli?.depends_on ?? {});
  expect(waitsFor).toEqual([expect.stringMatching(/^clickhouse(-1-1)?$/)]);
  expect(cli?.environment?.CLICKHOUSE_URL).toBe(`http://${waitsFor}:8123`);
});

test('.env.example names every variable that a compose file asks for', () => {
  const named = new Set([...read('.env.example').matchAll(/^#? ?([A-Z_]+)=/gm)].map(([, name]) => name));
  const asked = files.flatMap((file) => [...read(file).matchAll(/\$\{([A-Z_]+)/g)].map(([, name]) => name));
  expect(asked.length).toBeGreaterThan(20);
  expect([...new Set(asked)].filter((name) => !named.has(name))).toEqual([]);
});
