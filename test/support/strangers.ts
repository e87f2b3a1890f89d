import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Server } from '../../clickhouse/client.ts';

/** Whether tests can become another user. */
export const isRoot = process.getuid?.() === 0;
export const nobody = 65_534;

/**
 * Runs a script of Node as the user nobody, or as this one where that takes root. It becomes nobody after its start,
 * who may not be able to read the program.
 */
export function startStranger(script: string, args: readonly string[] = []): ChildProcessWithoutNullStreams {
  const become = `process.setgroups([]); process.setgid(${nobody}); process.setuid(${nobody});`;
  return spawn(process.execPath, ['-e', `${isRoot ? become : ''}${script}`, ...args], { cwd: '/' });
}

/** What the script printed; it must have ended well. */
export async function stranger(script: string, args: readonly string[] = []): Promise<string> {
  const child = startStranger(script, args);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Over a connection of its own, with any headers, also those that browsers do not let pages set. */
export async function ask(
  url: string,
  { path = '/', method = 'POST', headers = {}, body = '' }: Asked = {},
): Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: string }> {
  const sent = request(`${url}${path}`, { method, agent: false, headers }).end(body);
  const [response] = await once(sent, 'response');
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

/** A statement of a user who logs in; its answer, or the error. */
export async function answerTo({ url, user, password }: Server, sql: string): Promise<string> {
  const { body } = await ask(url, { headers: { authorization: basic(user, password) }, body: sql });
  return body.trim();
}

export function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/** The TCP ports that a process listens on. */
export function listeningPorts(pid: number): number[] {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1];
      } catch {
        // Closed meanwhile.
        return undefined;
      }
    }),
  );
  return ['tcp', 'tcp6'].flatMap((protocol) =>
    readFileSync(`/proc/${pid}/net/${protocol}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === '0A' && inodes.has(inode))
      .map(([, local = '']) => Number.parseInt(local.split(':')[1] ?? '', 16)),
  );
}
