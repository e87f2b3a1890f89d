import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '../config/config.ts';

/** The parameter that makes an address a link: who made it, until when it holds, and the proof. */
export const linkParameter = 'link';

const dayMs = 86_400_000;
export const defaultLinkMs = 7 * dayMs;
export const maxLinkMs = 366 * dayMs;

/** A token as a link needs it: its owner's proof is made of the stored hash and of a secret that is not in the store. */
export interface LinkMaker {
  readonly id: string;
  readonly hash: string;
}

/** What a link says of itself; nothing of it is proven. */
export interface LinkClaim {
  /** Of the token that made it. */
  readonly token: string;
  readonly expires: Date;
  /** Whether it is the link that the token of this hash makes for what it is in. */
  readonly isMadeBy: (hash: string) => boolean;
}

/**
 * Signs addresses: whoever has a link has one report until the link or its token ends, without a token. Nothing is
 * stored. A copy of the store alone makes no links.
 */
export class Links {
  readonly #secret: (toMake: boolean) => string | undefined;

  /** @param secret called when it is needed; undefined where links are not set up */
  constructor(secret: (toMake: boolean) => string | undefined) {
    this.#secret = secret;
  }

  /** The address as a link; undefined where links are not set up. */
  make({ id, hash }: LinkMaker, address: string, expires: Date): string | undefined {
    const secret = this.#secret(true);
    if (secret === undefined) return undefined;
    const until = Math.floor(expires.getTime() / 1000);
    const { pathname, searchParams } = at(address);
    const proof = sign(secret, hash, [id, until, pathname, [...searchParams]]);
    searchParams.set(linkParameter, `${id}.${until}.${proof.toString('base64url')}`);
    return `${pathname}?${searchParams}`;
  }

  /** What the link in an address claims; undefined when it has no link, null when its link is not of this service. */
  read(address: string): LinkClaim | null | undefined {
    const { pathname, searchParams } = at(address);
    const texts = searchParams.getAll(linkParameter);
    if (texts.length === 0) return undefined;
    const [, token, until, proof] = /^(\w{1,32})\.(\d{1,12})\.([\w-]{43})$/.exec(texts.join(' ')) ?? [];
    const secret = this.#secret(false);
    if (token === undefined || until === undefined || proof === undefined || secret === undefined)
      return null;
    searchParams.delete(linkParameter);
    const said = [token, Number(until), pathname, [...searchParams]];
    return {
      token,
      expires: new Date(Number(until) * 1000),
      isMadeBy: (hash) => timingSafeEqual(sign(secret, hash, said), Buffer.from(proof, 'base64url')),
    };
  }
}

/** Only path and parameters count: the service does not know under which name it is reached. */
function at(address: string): URL {
  return new URL(address, 'http://adtally');
}

function sign(secret: string, hash: string, said: readonly unknown[]): Buffer {
  const key = createHmac('sha256', secret).update(`link 1 ${hash}`).digest();
  return createHmac('sha256', key).update(JSON.stringify(said)).digest();
}

/**
 * The links of this installation: their secret is LINK_SECRET, or, where ClickHouse is embedded, in a file of DATA_DIR
 * that is made with the first link.
 */
export function linksOf({ linkSecret, clickhouse, dataDir }: Config): Links {
  const file = join(dataDir, 'link-secret');
  return new Links((toMake) => linkSecret ?? (clickhouse.url ? undefined : fromFile(file, toMake)));
}

function fromFile(file: string, toMake: boolean): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'ENOENT') throw error;
  }
  if (!toMake) return undefined;
  // Under its name it is whole from the first moment on, also where the power fails: without a secret anybody makes links.
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx', flush: true });
  try {
    linkSync(draft, file);
    syncFolder(dirname(file));
  } catch (error) {
    // Another process was first.
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft);
  }
  return readFileSync(file, 'utf8');
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
