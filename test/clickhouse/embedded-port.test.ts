import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { embedded } from '../support/compiled.ts';
import { useFolder } from '../support/folder.ts';
import { startProcess } from '../support/process.ts';
import { ask, basic, isRoot, nobody } from '../support/strangers.ts';

const { acquireEmbedded } = await embedded();
const root = useFolder();

/** Tries every way to get the port, again and again, and prints those that worked. Node 20 cannot share a port. */
const squat = `
import os, socket, sys, time
port, root = int(sys.argv[1]), sys.argv[2] == 'root'
if root:
    os.setgroups([]); os.setgid(${nobody}); os.setuid(${nobody})
ways = [(host, option) for host in ('127.0.0.1', '0.0.0.0', '::')
        for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT if root else None)]
print('begins', flush=True)
end = time.time() + 90
while time.time() < end:
    for host, option in ways:
        s = socket.socket(socket.AF_INET6 if host == '::' else socket.AF_INET)
        try:
            if option: s.setsockopt(socket.SOL_SOCKET, option, 1)
            s.bind((host, port)); s.listen()
            print('took', host, option, flush=True); sys.exit()
        except OSError: pass
        finally: s.close()
`;

test('while a killed engine is away nobody else can take its port, and be sent the passwords', async () => {
  const lease = await acquireEmbedded(join(root, 'data'));
  const squatter = startProcess('python3', ['-c', squat, new URL(lease.url).port, isRoot ? 'root' : 'owner']);
  try {
    await squatter.said(/begins/);
    const { user, password } = lease.address;
    const answer = () =>
      ask(lease.url, { headers: { authorization: basic(user, password) }, body: 'SELECT 1' }).then(
        ({ body }) => body,
        (error: NodeJS.ErrnoException) => error.code,
      );
    process.kill(lease.pid, 'SIGKILL');
    await vi.waitUntil(async () => (await answer()) === 'ECONNREFUSED', { timeout: 10_000, interval: 1 });
    await vi.waitUntil(async () => (await answer()) === '1\n', { timeout: 60_000 });
  } finally {
    const { stdout } = await squatter.kill('SIGKILL');
    expect(stdout).toBe('begins\n');
    await lease.release();
  }
});
