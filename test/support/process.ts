import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { afterAll, expect } from 'vitest';
import type { Address } from '../../clickhouse/client.ts';
import { type ReportFormatName, reportFormats } from '../../src/report/formats.ts';
import { cliFor } from './chunk-options.ts';
import { startOf } from './compiled.ts';

/** How a process ended and everything it wrote. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a process gets as its standard input: all of it, or nothing yet and no end. */
export type Input = string | Buffer | 'stays open';

export interface Command {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  /** Resolves with the first match in what it wrote to either stream; rejects if it ends without one. */
  said(pattern: RegExp): Promise<RegExpExecArray>;
  /** Sends the signal, if it still runs, and waits for its end. */
  kill(signal: NodeJS.Signals): Promise<Ended>;
}

export interface Commands {
  /** Starts `adtally` from the checkout. */
  start(args: readonly string[], env?: Record<string, string>, input?: Input): Command;
  /** Runs `adtally` from the checkout to its end, with `input` as its standard input. */
  run(args: readonly string[], env?: Record<string, string>, input?: string | Buffer): Promise<Ended>;
  /** Kills what still runs. */
  killAll(): Promise<void>;
}

/** What a command wrote on standard output; it must have gone well. */
export async function outputOf(command: Ended | Promise<Ended>): Promise<string> {
  const { code, stdout, stderr } = await command;
  expect(code, stderr).toBe(0);
  return stdout;
}

/** What makes `adtally` use a database. */
export function environmentOf({ url, user, password, database }: Address): Record<string, string> {
  return {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: database,
  };
}

export const checkout = fileURLToPath(new URL('../../', import.meta.url));

/** `adtally` as a process of its own; what still runs when the tests of the file end is killed. */
export function useCommands(): Commands {
  const running = new Set<Command>();
  const start = (args: readonly string[], env: Record<string, string> = {}, input?: Input) => {
    const command = startProcess(
      process.execPath,
      [...startOf(cliFor(args)), ...args],
      { CLICKHOUSE_URL: '', ...env },
      input,
    );
    running.add(command);
    void command.ended.then(() => running.delete(command));
    return command;
  };
  const killAll = async () => {
    await Promise.all([...running].map((command) => command.kill('SIGKILL')));
  };
  afterAll(killAll);
  return { start, run: (args, env, input) => start(args, env, input).ended, killAll };
}

/** Any program, in the checkout, with nothing of the test runner's environment but the search path. */
export function startProcess(
  program: string,
  args: readonly string[],
  env: Record<string, string> = {},
  input?: Input,
): Command {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(program, args, { cwd: checkout, env: { PATH, HOME, ...env } });
  const written = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    written.stderr += text;
  });
  // It may end without having read its input.
  child.stdin.on('error', () => undefined);
  if (input !== 'stays open') child.stdin.end(input);
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal, ...written }));
  });
  return {
    pid: child.pid ?? 0,
    ended,
    said: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(written.stdout) ?? pattern.exec(written.stderr);
          if (match) resolve(match);
        };
        look();
        child.stdout.on('data', look);
        child.stderr.on('data', look);
        void ended.then(({ code, signal, stderr }) =>
          reject(new Error(`it ended (${signal ?? code}) and did not say ${pattern}: ${stderr}`)),
        );
      }),
    kill: (signal) => {
      child.kill(signal);
      return ended;
    },
  };
}

/** The address a `serve` or `demo` command says it listens on. */
export async function listening(command: Command): Promise<string> {
  const [, url = ''] = await command.said(/listening on (http:\/\/[^"; ]+)/);
  return url;
}

/** Whether a process runs; one that ended and was not collected by its parent yet does not. */
export function isAlive(pid: number): boolean {
  return /^State:\s+[^ZX]/m.test(processStatus(pid));
}

export const parentOf = (pid: number): number => Number(/^PPid:\s+(\d+)/m.exec(processStatus(pid))?.[1]);

/** The largest resident memory of a process up to now, in MB. */
export const peakMemoryMb = (pid: number): number => statusMb(pid, 'VmHWM');

export const residentMemoryMb = (pid: number): number => statusMb(pid, 'VmRSS');

function statusMb(pid: number, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(processStatus(pid))?.[1]) / 1024;
}

function processStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}

/** Asks by POST with a token. What is no text is written as JSON. */
export function postJson(
  url: string,
  token: string | undefined,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' || body instanceof Blob ? body : JSON.stringify(body),
  });
}

export interface Ask {
  readonly token: string;
  readonly path?: string;
  readonly start?: string;
  readonly end?: string;
  /** Accept-Encoding; absent: none is sent. */
  readonly accept?: string;
  readonly format?: ReportFormatName;
}

/** Asks for a report over a bare connection; the answer is read at the test's own pace and not unpacked. */
export function openReport(url: string, ask: Ask): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${ask.path ?? '/v1/campaigns/breakdowns/device_creative_date'}`, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: `Bearer ${ask.token}`,
        'content-type': 'application/json',
        ...(ask.accept && { 'accept-encoding': ask.accept }),
        ...(ask.format && { accept: reportFormats[ask.format].mediaType }),
      },
    });
    sent.once('response', resolve).once('error', reject);
    sent.end(JSON.stringify({ start_time: ask.start ?? '2026-01-01', end_time: ask.end ?? '2026-12-31' }));
  });
}
