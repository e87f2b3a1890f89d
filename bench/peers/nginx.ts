import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nginxFolder, startNginx } from '../harness/nginx.ts';

/** nginx that serves these bytes as a file; its address, and what stops it. @throws as `startNginx` */
export async function serveByNginx(
  scratch: string,
  bytes: Buffer,
): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = await nginxFolder(scratch);
  await writeFile(join(folder, 'answer.json'), bytes);
  const http = 'keepalive_requests 100000000; sendfile on;';
  const server = `root ${folder}; default_type application/json;`;
  const { port, stop } = await startNginx(folder, { http, server });
  return { url: `http://127.0.0.1:${port}/answer.json`, stop };
}
