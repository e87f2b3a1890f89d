import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { formats } from '../../../ingest/formats/formats.ts';
import { type Answer, sendTo } from '../receiver.ts';
import type { Dice } from '../round-files.ts';
import type { Content } from './contents.ts';

interface Pushed {
  readonly content: Content;
  readonly key: string | undefined;
  readonly answer: Answer;
}

interface PusherOptions {
  /** Where the service is now. */
  readonly url: () => string;
  readonly token: string;
  /** Names what it sends under keys. */
  readonly prefix: string;
  readonly dice: Dice;
  readonly any: () => Promise<Content>;
}

/** Sends bodies to `adtally receive` as a sender does that meets everything: cut, repeated, two at a time, under keys. */
export class Pusher {
  readonly #pushed: Pushed[] = [];
  readonly #options: PusherOptions;
  #keys = 0;

  constructor(options: PusherOptions) {
    this.#options = options;
  }

  async push(): Promise<void> {
    const { dice, prefix } = this.#options;
    const content = await this.#whole();
    if (dice.below(2)) {
      content.show(0);
      const [answer] = await this.#twice(content, undefined);
      requireOk(answer);
      content.settled = 0;
      this.#pushed.push({ content, key: undefined, answer });
      return;
    }
    const key = `${prefix}${++this.#keys}`;
    const other = dice.below(3) ? content : await this.#whole();
    // Other bytes under the key: one of the two is loaded.
    const each = await Promise.all([...new Set([content, other])].map((one) => this.#first(one, key)));
    const loaded = each.filter(({ answer }) => answer.status === 200);
    const refused = each.filter(({ answer }) => answer.json.code === 'idempotency_key_reused');
    if (loaded.length !== 1 || loaded.length + refused.length !== each.length)
      throw new Error(`under one key: ${JSON.stringify(each.map(({ answer }) => answer.json))}`);
    for (const one of loaded) {
      one.content.keys.add(key);
      this.#pushed.push({ ...one, key });
    }
  }

  /** Sends everything once more. @throws unless it is answered as before */
  async repeat(): Promise<void> {
    for (const { content, key, answer } of this.#pushed) {
      const again = await this.#untilAnswered(content, key);
      requireOk(again);
      requireAll(content, again);
      const same = ['load', 'accepted', 'rejected', 'visible_at'].every(
        (name) => again.json[name] === answer.json[name],
      );
      if (key !== undefined && !same)
        throw new Error(`a repeated body: ${JSON.stringify([answer.json, again.json])}`);
    }
  }

  /** One that does not grow: a body is not sent in parts. */
  async #whole(): Promise<Content> {
    for (;;) {
      const content = await this.#options.any();
      if (!content.grows) return content;
    }
  }

  async #first(content: Content, key: string) {
    const [answer] = await this.#twice(content, key);
    return { content, key, answer };
  }

  async #twice(content: Content, key: string | undefined): Promise<[Answer, Answer | undefined]> {
    const { dice } = this.#options;
    if (dice.below(3) === 0) await this.#cut(content, key);
    const [first, second] = await Promise.all([
      this.#untilAnswered(content, key),
      dice.below(3) === 0 ? this.#untilAnswered(content, key) : undefined,
    ]);
    for (const answer of [first, second]) if (answer?.status === 200) requireAll(content, answer);
    return [first, second];
  }

  /** Again and again until it is told what became of the body. */
  async #untilAnswered(content: Content, key: string | undefined): Promise<Answer> {
    const { dice, url } = this.#options;
    const packed = dice.below(3) === 0;
    const bytes = packed ? gzipSync(content.bytesOf(0)) : content.bytesOf(0);
    const headers = { ...this.#headers(content, key), ...(packed && { 'content-encoding': 'gzip' }) };
    for (;;) {
      const answer = await sendTo(`${url()}/v1/events`, bytes, headers).catch(() => undefined);
      if (answer && ![429, 503].includes(answer.status)) return answer;
      await delay(100);
    }
  }

  /** A sender that goes before the end of the body. */
  async #cut(content: Content, key: string | undefined): Promise<void> {
    const bytes = content.bytesOf(0);
    const headers = { ...this.#headers(content, key), 'content-length': bytes.length };
    await new Promise<void>((resolve) => {
      const sent = request(`${this.#options.url()}/v1/events`, { method: 'POST', agent: false, headers });
      sent.on('error', () => {}).on('close', resolve);
      sent.write(bytes.subarray(0, this.#options.dice.below(bytes.length)), () => sent.destroy());
    }).catch(() => {});
  }

  #headers({ format }: Content, key: string | undefined): Record<string, string> {
    return {
      authorization: `Bearer ${this.#options.token}`,
      'content-type': formats[format].mediaTypes[0] ?? '',
      ...(key !== undefined && { 'idempotency-key': key }),
    };
  }
}

function requireOk({ status, json }: Answer): void {
  if (status !== 200) throw new Error(`a body is answered with ${status}: ${JSON.stringify(json)}`);
}

function requireAll(content: Content, { json }: Answer): void {
  const records = Number(json.accepted) + Number(json.duplicates) + Number(json.rejected);
  if (records !== content.recordsOf(0).length)
    throw new Error(`${content.recordsOf(0).length} records are answered with ${JSON.stringify(json)}`);
}
