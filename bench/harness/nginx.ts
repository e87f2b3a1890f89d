import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { pollFor } from '../../clickhouse/poll.ts';
import { onCleanup } from './cleanup.ts';
import { freePort } from './free-ports.ts';

export interface Nginx {
  /** HTTP or HTTPS, as the server is configured. */
  readonly port: number;
  stop(): Promise<void>;
}

/** Where nginx keeps all that belongs to one server. */
export const nginxFolder = (scratch: string): Promise<string> => mkdtemp(join(scratch, 'nginx-'));

/**
 * Starts nginx with one server and no log of requests.
 * @param server what is said of it beside where it listens
 * @param listen what follows its address, such as `ssl`
 * @throws ENOENT when there is no nginx, and when it ends at once
 */
export async function startNginx(
  folder: string,
  {
    server,
    http = '',
    listen = '',
  }: { readonly server: string; readonly http?: string; readonly listen?: string },
): Promise<Nginx> {
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  // As root its worker would become another user, who may not read the folder.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const configuration = `
    ${user} daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log; events { worker_connections 1024; }
    http {
      access_log off; ${http}
      ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
      server { listen 127.0.0.1:${port} ${listen}; ${server} }
    }`;
  const file = join(folder, 'nginx.conf');
  await writeFile(file, configuration);
  const nginx = spawn('nginx', ['-p', folder, '-c', file], { stdio: 'ignore' });
  const ended = once(nginx, 'exit').catch(() => undefined);
  const stop = onCleanup(async () => {
    nginx.kill();
    await ended;
  });
  const listens = async () => {
    if (nginx.exitCode !== null) throw new Error('nginx did not start');
    const socket = connect(port, '127.0.0.1');
    return once(socket, 'connect').then(
      () => Boolean(socket.destroy()),
      () => undefined,
    );
  };
  try {
    await once(nginx, 'spawn');
    await pollFor(listens, { pollMs: 50, signal: AbortSignal.timeout(20_000) });
    return { port, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
