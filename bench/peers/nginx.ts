import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../clickhouse/embedded/free-ports.ts';
import { pollFor } from '../../clickhouse/poll.ts';
import { onCleanup } from '../harness/cleanup.ts';

/**
 * nginx with one worker and no log, which serves these bytes as a file; its address, and what stops it.
 * @throws ENOENT when there is no nginx
 */
export async function serveByNginx(
  scratch: string,
  bytes: Buffer,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const folder = await mkdtemp(join(scratch, 'nginx-'));
  const port = await freePort();
  await mkdir(join(folder, 'logs'));
  await writeFile(join(folder, 'answer.json'), bytes);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const lines = [
    'daemon off; worker_processes 1; pid nginx.pid; error_log stderr;',
    // As root its worker would become another user, who may not read the folder.
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    'events { worker_connections 1024; }',
    'http { access_log off; keepalive_requests 100000000; sendfile on;',
    ...temporary.map((name) => `${name}_temp_path ${join(folder, name)};`),
    `server { listen 127.0.0.1:${port}; root ${folder}; default_type application/json; } }`,
  ];
  await writeFile(join(folder, 'nginx.conf'), lines.join('\n'));
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' });
  await once(child, 'spawn');
  const ended = once(child, 'exit');
  const stop = onCleanup(async () => {
    child.kill();
    await ended;
  });
  const url = `http://127.0.0.1:${port}/answer.json`;
  const answers = async () => (await fetch(url).catch(() => undefined))?.ok || undefined;
  await pollFor(answers, { pollMs: 20, signal: AbortSignal.timeout(10_000) });
  return { url, stop };
}
