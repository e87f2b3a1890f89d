import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkout } from './process.ts';

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

/** All that nginx is told: this configuration, and that what it writes is in a folder. */
export function nginxConfig(folder: string, configuration: string): string {
  const inFolder = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  // As another user it could not write to a folder of ours.
  const user = process.getuid?.() === 0 ? 'user root; ' : '';
  return `${user}pid ${join(folder, 'nginx.pid')}; error_log stderr; daemon off; worker_processes 1;\n${configuration.replace('http {', `http { ${inFolder.join(' ')} access_log off;`)}`;
}
