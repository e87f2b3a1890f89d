import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../clickhouse/embedded/free-ports.ts';
import { pollFor } from '../../clickhouse/poll.ts';
import { onCleanup } from './cleanup.ts';

const run = promisify(execFile);

/** nginx with TLS before a service, set up as docs/security.md says. @throws when nginx or openssl is not there */
export async function startTlsProxy(
  scratch: string,
  url: string,
): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = join(scratch, 'nginx');
  await mkdir(folder, { recursive: true });
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  const about = ['-nodes', '-days', '2', '-subj', '/CN=localhost', '-keyout', key, '-out', certificate];
  await run('openssl', ['req', '-x509', ...curve, ...about]);
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const configuration = `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
    http {
      access_log off; ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
      server {
        listen 127.0.0.1:${port} ssl;
        ssl_certificate ${certificate}; ssl_certificate_key ${key};
        ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        location / {
          proxy_pass ${url}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
          proxy_buffering off;
        }
      }
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
    return { url: `https://127.0.0.1:${port}`, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
