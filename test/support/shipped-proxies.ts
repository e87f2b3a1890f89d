import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { type Command, checkout, startProcess } from './process.ts';

const read = (file: string) => readFileSync(join(checkout, file), 'utf8');

/** The configuration of docker-compose.cluster.yml, with these ports and without the names of Docker. */
export function proxyOfCluster([one, two]: readonly number[], listen: number): string {
  return read('clickhouse/config/cluster/proxy.conf')
    .replace(/^ *resolver .*$/m, '')
    .replace('server adtally-1:8080 resolve', `server 127.0.0.1:${one}`)
    .replace('server adtally-2:8080 resolve', `server 127.0.0.1:${two}`)
    .replace('listen 8080', `listen 127.0.0.1:${listen}`);
}

/** The configuration of docs/security.md, with these ports and without certificates. */
export function proxyOfDocs(service: number, listen: number): string {
  const [, server = ''] = /^```nginx\n(.*?)^```$/ms.exec(read('docs/security.md')) ?? [];
  const here = server
    .replace(/^ *ssl_.*\n/gm, '')
    .replace('127.0.0.1:8080', `127.0.0.1:${service}`)
    .replace('listen 443 ssl', `listen 127.0.0.1:${listen}`);
  return `events {}\nhttp {\n${here}}\n`;
}

/** Starts nginx with this configuration, and waits until a service answers at a URL behind it. What it writes is in a folder. */
export async function startNginx(folder: string, configuration: string, url: string): Promise<Command> {
  const inFolder = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  // As another user it could not write to a folder of ours.
  const user = process.getuid?.() === 0 ? 'user root; ' : '';
  const file = join(folder, 'nginx.conf');
  const http = configuration.replace('http {', `http { ${inFolder.join(' ')} access_log off;`);
  const main = `${user}pid ${join(folder, 'nginx.pid')}; error_log stderr; daemon off; worker_processes 1;`;
  writeFileSync(file, `${main}\n${http}`);
  const nginx = startProcess('nginx', ['-p', folder, '-c', file, '-e', 'stderr']);
  const up = () => fetch(url).then(({ status }) => status, String);
  await vi.waitFor(async () => expect(await up()).toBe(200), { timeout: 20_000 });
  return nginx;
}
