import { setTimeout as delay } from 'node:timers/promises';
import type { Address } from '../../../clickhouse/client.ts';
import { cliFor } from '../chunk-options.ts';
import { startOf } from '../compiled.ts';
import { refuseCrash, send } from '../killable-store.ts';
import type { ObjectStorage } from '../object-storage.ts';
import { type Command, environmentOf, listening, startProcess } from '../process.ts';
import type { Dice } from '../round-files.ts';

const names = ['follower', 'other follower', 'receive'] as const;
type Name = (typeof names)[number];

/** What each of the followers calls the storage, so that their requests can be told apart. */
export const followedAt = (endpoint: string): [string, string] => [
  endpoint,
  endpoint.replace('127.0.0.1', 'localhost'),
];

/** Two followers of a bucket and `adtally receive`. What ends is started again, as containers are. */
export class Services {
  /** Where bodies are taken now. */
  url = '';
  readonly #address: Address;
  readonly #storage: ObjectStorage;
  readonly #dice: Dice;
  readonly #running = new Map<Name, Command>();
  readonly #kept: Promise<unknown>;
  #stopping = false;
  #crash: unknown;

  constructor(address: Address, storage: ObjectStorage, dice: Dice) {
    this.#address = address;
    this.#storage = storage;
    this.#dice = dice;
    this.#kept = Promise.all(names.map((name) => this.#keep(name)));
  }

  /** Kills one of them, or lets it stand still for a while. */
  async disturb(dice: Dice): Promise<string> {
    const name = dice.one(names);
    const command = this.#running.get(name);
    const signal = dice.one(['SIGKILL', 'SIGKILL', 'SIGTERM', 'SIGSTOP'] as const);
    if (command) send(command, signal);
    if (command && signal === 'SIGSTOP') {
      await delay(dice.below(2_000));
      send(command, 'SIGCONT');
    }
    return `${name} ${signal}`;
  }

  killAll(): void {
    for (const command of this.#running.values()) send(command, 'SIGKILL');
  }

  /** @throws where one of them has ended with a stack trace */
  requireNoCrash(): void {
    if (this.#crash) throw this.#crash;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.killAll();
    await this.#kept;
  }

  async #keep(name: Name): Promise<void> {
    while (!this.#stopping) {
      const command = this.#start(name);
      this.#running.set(name, command);
      if (name === 'receive') {
        listening(command).then(
          (url) => {
            this.url = url;
          },
          () => {},
        );
      }
      try {
        refuseCrash(await command.ended);
      } catch (error) {
        this.#crash = error;
      }
      await delay(200);
    }
  }

  #start(name: Name): Command {
    const { bucket, endpoint, keys } = this.#storage;
    const hosts = followedAt(endpoint);
    const place = name === 'follower' ? hosts[0] : hosts[1];
    const args = name === 'receive' ? ['receive'] : this.#following(bucket, place);
    return startProcess(process.execPath, [...startOf(cliFor(args)), ...args], {
      ...environmentOf(this.#address),
      ...keys,
      ...{ RECEIVE_PORT: '0', ANSWER_TRUST_MS: '0' },
    });
  }

  #following(bucket: string, endpoint: string): string[] {
    const chunkBytes = this.#dice.one([100_000, 1 << 20, 128 << 20]);
    return [
      ...['ingest', 'events', `s3://${bucket}/**`, '--endpoint', endpoint, '--follow', '1s'],
      ...['--chunk-bytes', `${chunkBytes}`],
    ];
  }
}
