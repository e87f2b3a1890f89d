import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { nginxFolder, startNginx } from './nginx.ts';

const run = promisify(execFile);

/** nginx with TLS before a service, set up as docs/security.md says. @throws when nginx or openssl is not there */
export async function startTlsProxy(
  scratch: string,
  url: string,
): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = await nginxFolder(scratch);
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  const about = ['-nodes', '-days', '2', '-subj', '/CN=localhost', '-keyout', key, '-out', certificate];
  await run('openssl', ['req', '-x509', ...curve, ...about]);
  const server = `
    ssl_certificate ${certificate}; ssl_certificate_key ${key};
    ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    location / {
      proxy_pass ${url}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
      proxy_buffering off;
    }`;
  const { port, stop } = await startNginx(folder, { server, listen: 'ssl' });
  return { url: `https://127.0.0.1:${port}`, stop };
}
