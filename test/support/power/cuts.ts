import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { select } from '../../../clickhouse/client.ts';
import { cliFor } from '../chunk-options.ts';
import { fileOf } from '../compiled.ts';
import { adtally, Copy, type Ground, makeGround, removeGround } from '../killed-commands.ts';
import type { Command, Ended } from '../process.ts';
import { seededRandom } from '../random.ts';
import { type PoweredCommand, poweredCommands, writePoweredFiles } from './commands.ts';
import { Disk, type DiskKind, diskKinds, journals } from './disk.ts';

export interface Cuts {
  readonly cuts: number;
  readonly seed: number;
  /** Only this one of them. */
  readonly only?: number;
  /** Whether ClickHouse waits for the disk. */
  readonly synced: boolean;
  readonly onCut?: (text: string) => void;
}

/** What a command leads to when nothing disturbs it. */
interface Undisturbed {
  readonly before: string;
  readonly after: string;
  readonly ms: number;
}

/**
 * Cuts the power of the disk on which DATA_DIR lies, at a random moment of a random command or behind it, each time on
 * another copy of a store. If ClickHouse waits for the disk, all is there that a command did which had said that it is done. If
 * it does not, `verify` finds what is lost. In both cases the same command, or what `verify` says, mends it.
 * @returns what was wrong
 */
export async function powerCuts({ cuts, seed, only, synced, onCut }: Cuts): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'adtally-power-'));
  const ground = await makeGround();
  writePoweredFiles(ground);
  const known = new Map<string, Undisturbed>();
  const wrong: string[] = [];
  const numbers = Array.from({ length: cuts }, (_, n) => n + 1).filter(
    (n) => only === undefined || n === only,
  );
  try {
    for (const number of numbers) {
      const random = seededRandom(seed * 7919 + number);
      const cut = new Cut(ground, folder, one(random, diskKinds), synced);
      const [name, command] = one(random, Object.entries(poweredCommands(ground, cut.disk.root)));
      const what: string[] = [`cut ${number}: ${name}`];
      const startedAt = performance.now();
      try {
        if (!known.has(name)) known.set(name, await undisturbed(ground, folder, name));
        await cut.run(command, known.get(name) as Undisturbed, random, what);
      } catch (error) {
        what.push(`${error instanceof Error ? error.stack : error}`);
        wrong.push(`seed ${seed}, ${what.join(', ')}: ${error instanceof Error ? error.message : error}`);
        what.push('WRONG');
      } finally {
        await cut.disk.remove();
      }
      onCut?.(`${what.join(', ')}, ${Math.round((performance.now() - startedAt) / 1000)} s`);
    }
  } finally {
    removeGround(ground);
    rmSync(folder, { recursive: true });
  }
  return wrong;
}

const one = <T>(random: () => number, of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;

async function undisturbed(ground: Ground, folder: string, name: string): Promise<Undisturbed> {
  const cut = new Cut(ground, join(folder, 'undisturbed'), 'ext4', true);
  try {
    const command = poweredCommands(ground, cut.disk.root)[name] as PoweredCommand;
    const copy = cut.copy();
    const before = await cut.state(copy);
    const startedAt = performance.now();
    requireDone(await (await cut.start(copy, command, command.args)).ended);
    const ms = performance.now() - startedAt;
    return { before, after: await cut.state(copy), ms };
  } finally {
    await cut.disk.remove();
  }
}

class Cut {
  readonly disk: Disk;
  readonly #ground: Ground;
  readonly #kind: DiskKind;
  readonly #synced: boolean;

  constructor(ground: Ground, folder: string, kind: DiskKind, synced: boolean) {
    this.disk = new Disk(folder, kind);
    this.#ground = ground;
    this.#kind = kind;
    this.#synced = synced;
  }

  copy(): Copy {
    const copy = new Copy(this.#ground, 'embedded', 'data', this.disk.root);
    this.disk.sync();
    return copy;
  }

  async start(copy: Copy, { newer }: PoweredCommand, args: readonly string[]): Promise<Command> {
    return adtally(newer ? this.#ground.newer : fileOf(cliFor(args)), args, await copy.env());
  }

  async run(
    command: PoweredCommand,
    { before, after, ms }: Undisturbed,
    random: () => number,
    what: string[],
  ): Promise<void> {
    const held = random() < 0.5;
    const journal = one(random, journals);
    const copy = this.copy();
    if (held) await copy.hold();
    const running = await this.start(copy, command, command.args);
    let ended: Ended | undefined;
    void running.ended.then((how) => {
      ended = how;
    });
    const share = 0.15 + random();
    const behind = random() < 0.35;
    const wait = ms * share + (held ? 0 : this.#ground.engineStartMs);
    const pause = random() * (random() < 0.5 ? 100 : 3_000);
    await (behind ? running.ended.then(() => delay(pause)) : Promise.race([delay(wait), running.ended]));
    const done = ended;
    await this.disk.cut(random, journal);
    await running.kill('SIGKILL');
    copy.engineIsGone();
    if (done) requireDone(done);
    what.push(
      `${done ? 'done' : `after ${Math.round(100 * share)} %`}${behind ? ` ${Math.round(pause)} ms ago` : ''}`,
      held ? 'the engine stays' : 'the engine starts',
      this.#kind,
      journal,
    );
    await this.#requireMended(copy, command, { done: done !== undefined, before, after }, what);
  }

  async #requireMended(
    copy: Copy,
    command: PoweredCommand,
    { done, before, after }: { readonly done: boolean; readonly before: string; readonly after: string },
    what: string[],
  ): Promise<void> {
    const [verb = '', target = ''] = command.args;
    const found = await this.#adtally(copy, command, 'verify');
    what.push(found.code === 0 ? 'whole' : 'not whole');
    if (done && this.#synced) {
      if (found.code !== 0) throw new Error(`verify: ${found.stdout}${found.stderr}`);
      requireSame(await this.state(copy), after, 'what was done is lost');
      if (verb === 'backup') {
        requireDone(await this.#adtally(copy, command, 'restore', target, '--replace'));
        requireSame(await this.state(copy), before, 'the backup');
      }
      return;
    }
    if (!this.#synced)
      return this.#requireFound(copy, command, { done, before, after }, found.code === 0, what);
    await this.#again(copy, command);
    requireSame(await this.state(copy), after, 'the same command again');
    await copy.requireClean();
  }

  /** Without syncs: `verify` has found what is lost of events, and what it says mends it. */
  async #requireFound(
    copy: Copy,
    command: PoweredCommand,
    { done, before, after }: { readonly done: boolean; readonly before: string; readonly after: string },
    isWhole: boolean,
    what: string[],
  ): Promise<void> {
    if (done) {
      const state = await this.state(copy);
      what.push(state === after ? 'nothing lost' : state === before ? 'all of it lost' : 'some of it lost');
      if (isWhole && state !== before) requireSame(state, after, 'verify finds nothing');
    }
    // It may be for a load that is lost.
    await (await this.start(copy, command, command.args)).ended;
    for (let steps = 0; ; steps++) {
      const { code, stdout, stderr } = await this.#adtally(copy, command, 'verify');
      if (code === 0) break;
      if (steps === 20) throw new Error(`verify says how to mend it, and that does not: ${stderr}`);
      const [, interrupted] = /adtally ingest events (\S+)/.exec(stderr) ?? [];
      const [, load] = /adtally unload (\S+?),/.exec(stderr) ?? [];
      const file =
        interrupted ??
        stdout
          .split('\n')
          .find((line) => line.split('\t')[1] === load)
          ?.split('\t')[0];
      if (load && !interrupted) requireDone(await this.#adtally(copy, command, 'unload', load));
      if (file) requireDone(await this.#adtally(copy, command, 'ingest', 'events', '--quiet', file));
      else requireDone(await this.#adtally(copy, command, 'rebuild'));
    }
    what.push('mended');
  }

  async #again(copy: Copy, command: PoweredCommand): Promise<void> {
    const again = await (await this.start(copy, command, command.args)).ended;
    if (command.args[0] === 'backup' && /is there already/.test(again.stderr)) return;
    requireDone(again);
  }

  async #adtally(copy: Copy, command: PoweredCommand, ...args: string[]): Promise<Ended> {
    // The engine stays up for all that is asked.
    await copy.hold();
    return (await this.start(copy, command, args)).ended;
  }

  /** All reports, and what else commands leave, without times. */
  async state(copy: Copy): Promise<string> {
    await copy.hold();
    const reports = await copy.reports();
    const others = await copy.withStore((store) =>
      select(
        store,
        `SELECT (SELECT arraySort(groupUniqArray((label, revoked_at IS NULL))) FROM tokens FINAL) AS tokens,
          (SELECT groupArray((account_id, requests)) FROM account_limits FINAL) AS limits,
          (SELECT groupArray((account_id, currency)) FROM account_currencies FINAL) AS currencies,
          (SELECT arraySort(groupUniqArray((account_id, month, rows))) FROM closes) AS closed,
          (SELECT uniqExact(account_id, day) FROM confirmations) AS confirmed,
          (SELECT count() FROM rejected_rows FINAL WHERE toUInt64(replayed_at) = 0 AND toUInt64(dismissed_at) = 0) AS rejected,
          (SELECT count() FROM events) AS events,
          (SELECT arraySort(groupArray((account_id, campaign_id, name))) FROM campaigns FINAL) AS names`,
      ),
    );
    return `${JSON.stringify(others)}\n${reports}`;
  }
}

function requireDone({ code, stderr, stdout }: Ended): void {
  if (code !== 0 && code !== 4) throw new Error(`a command ended with ${code}: ${stderr}${stdout}`);
}

function requireSame(found: string, expected: string, what: string): void {
  if (found === expected) return;
  const lines = expected.split('\n');
  const other = found.split('\n').findIndex((line, n) => line !== lines[n]);
  throw new Error(
    `${what}: ${found.split('\n')[other]?.slice(0, 300)} and not ${lines[other]?.slice(0, 300)}`,
  );
}
