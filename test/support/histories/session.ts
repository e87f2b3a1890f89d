import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Address, connect, type Store, select } from '../../../clickhouse/client.ts';
import { retrying } from '../../../clickhouse/retry.ts';
import { cliFor } from '../chunk-options.ts';
import { startOf } from '../compiled.ts';
import { engineIn } from '../embedded-processes.ts';
import { isCrash, type KillableStore, refuseCrash, startKillable } from '../killable-store.ts';
import { Disk } from '../power/disk.ts';
import { type Command, type Ended, environmentOf, listening, parentOf, startProcess } from '../process.ts';
import { FaultyProxy } from './proxy.ts';

/** The default, and what all processes of a session are given. */
export const trustMs = 100;

/** A store of its own, the service as a process, and commands: what histories are made of. */
export class Session {
  readonly folder: string;
  readonly dataDir: string;
  readonly store: Store;
  readonly proxy: FaultyProxy;
  readonly disk: Disk | undefined;
  /** Starts the engine again when it ends. */
  readonly supervisor: { readonly pid: number };
  /** What services said that ended with a stack trace. */
  readonly crashes: string[] = [];
  /** When its disk was whole again after it had failed, as performance.now() tells; Infinity while it fails. */
  diskFailedUntil = 0;
  readonly #killable: KillableStore;
  readonly #commands = new Set<Command>();
  #service: Command | undefined;
  #kept: Promise<void> | undefined;
  #stopping = false;
  /** Of the service that runs now. */
  url = '';

  private constructor(
    folder: string,
    dataDir: string,
    killable: KillableStore,
    proxy: FaultyProxy,
    disk: Disk | undefined,
  ) {
    this.folder = folder;
    this.dataDir = dataDir;
    this.disk = disk;
    this.#killable = killable;
    this.proxy = proxy;
    this.store = connect(killable.address);
    const engine = this.engine();
    if (!engine) throw new Error('the engine has ended as soon as it had started');
    this.supervisor = { pid: parentOf(engine.pid) };
  }

  /** @param onDisk whether ClickHouse has a disk of its own, which can be filled and fail; only root can make one */
  static async start(onDisk: boolean): Promise<Session> {
    const folder = await mkdtemp(join(tmpdir(), 'adtally-histories-'));
    const disk = onDisk ? new Disk(folder, 'ext4') : undefined;
    const dataDir = join(folder, 'data');
    if (disk) {
      await mkdir(dataDir, { mode: 0o700 });
      await symlink(disk.root, join(dataDir, 'store'));
    }
    const killable = await startKillable(1, dataDir);
    const proxy = await FaultyProxy.start(killable.address.url);
    const session = new Session(folder, dataDir, killable, proxy, disk);
    session.#kept = session.#keepService();
    return session;
  }

  /** A command that is running, of those that were started and not of the service. */
  anyCommand(below: (limit: number) => number): Command | undefined {
    return [...this.#commands][below(this.#commands.size)];
  }

  get service(): Command | undefined {
    return this.#service;
  }

  /** @param env what the command has besides the store */
  async run(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
    const command = this.#start(args, env);
    this.#commands.add(command);
    try {
      const ended = await command.ended;
      refuseCrash(ended);
      return ended;
    } finally {
      this.#commands.delete(command);
    }
  }

  /** Rows of the store, which may restart meanwhile, or be without its disk. */
  async select<Row>(query: string, parameters: Record<string, unknown> = {}): Promise<Row[]> {
    for (;;) {
      const askedAt = performance.now();
      try {
        return await retrying(() => select<Row>(this.store, query, parameters));
      } catch (error) {
        if (askedAt > this.diskFailedUntil) throw error;
        await delay(200);
      }
    }
  }

  /** Undefined while it starts. */
  engine(): { readonly pid: number } | undefined {
    return engineIn(this.dataDir);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#service?.kill('SIGKILL');
    await this.#kept;
    await this.proxy.stop();
    await this.store.close();
    await this.#killable.stop();
    await this.disk?.remove();
    await rm(this.folder, { recursive: true, force: true });
  }

  #start(args: readonly string[], env: Record<string, string>): Command {
    const address: Address = { ...this.#killable.address, url: this.proxy.url };
    return startProcess(process.execPath, [...startOf(cliFor(args)), ...args], {
      ...environmentOf(address),
      ANSWER_TRUST_MS: `${trustMs}`,
      ...env,
    });
  }

  /** What ends is started again, as a container is. */
  async #keepService(): Promise<void> {
    while (!this.#stopping) {
      const service = this.#start(['serve'], { PORT: '0', RATE_LIMIT_REQUESTS: '1000000' });
      this.#service = service;
      listening(service).then(
        (url) => {
          this.url = url;
        },
        () => {},
      );
      const ended = await service.ended;
      // Without its log, of a line for each answer.
      const said = ended.stderr.replace(/^\{.*\n/gm, '');
      if (!this.#stopping && isCrash(ended)) this.crashes.push(`the service: ${said}`);
      await delay(100);
    }
  }
}
