import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterAll } from 'vitest';
import { startOf } from './compiled.ts';
import { checkout, type Ended } from './process.ts';

/** What a runner is told: the arguments of a command, and what it writes behind all that the command wrote. */
export interface CommandLine {
  readonly args: readonly string[];
  readonly end: string;
}

interface Runner {
  run(args: readonly string[]): Promise<Ended>;
  readonly ended: boolean;
  kill(): Promise<void>;
}

/**
 * Runs `adtally` to its end for the tests of a file that are not about the process: many commands in one process, of
 * which each takes a fraction of what a start takes. Commands that run at once have a process each.
 */
export function useCommandRunners(): (
  args: readonly string[],
  env: Record<string, string>,
) => Promise<Ended> {
  const all = new Set<Runner>();
  const idle = new Map<string, Runner[]>();
  afterAll(async () => {
    await Promise.all([...all].map((runner) => runner.kill()));
  });
  return async (args, env) => {
    // A process reads its configuration once.
    const key = JSON.stringify(env);
    const waiting = idle.get(key) ?? [];
    idle.set(key, waiting);
    const runner = waiting.pop() ?? startRunner(env);
    all.add(runner);
    const ended = await runner.run(args);
    if (!runner.ended) waiting.push(runner);
    return ended;
  };
}

function startRunner(env: Record<string, string>): Runner {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, startOf('test/support/command-runner'), {
    cwd: checkout,
    env: { PATH, HOME, CLICKHOUSE_URL: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  return {
    run: (args) => runIn(child, args),
    get ended() {
      return ended();
    },
    kill: async () => {
      if (ended()) return;
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
    },
  };
}

function runIn(child: ChildProcess, args: readonly string[]): Promise<Ended> {
  const end = `\0${randomUUID()}\n`;
  return new Promise((resolve, reject) => {
    const written = { stdout: '', stderr: '' };
    const finish = (code: number | null, signal: NodeJS.Signals | null) => {
      child.stdout?.removeAllListeners('data');
      child.stderr?.removeAllListeners('data');
      child.off('close', finish).off('error', reject);
      resolve({ code, signal, ...written });
    };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        written[name] += text;
        if (!written.stdout.endsWith(end) || !written.stderr.endsWith(end)) return;
        const [, stdout = '', code] = /^(.*)\0(\d+)$/s.exec(written.stdout.slice(0, -end.length)) ?? [];
        Object.assign(written, { stdout, stderr: written.stderr.slice(0, -end.length) });
        finish(Number(code), null);
      });
    }
    // The command ended its process itself.
    child.once('close', finish).once('error', reject);
    child.send({ args, end } satisfies CommandLine);
  });
}
