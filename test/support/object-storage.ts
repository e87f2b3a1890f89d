import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { AwsClient } from 'aws4fetch';
import { afterAll, beforeAll } from 'vitest';
import { type Command, startProcess } from './process.ts';
import { isSigned } from './signature.ts';

/** What a request meets instead of its answer. */
export type Fault =
  | { readonly status: number; readonly code: string; readonly headers?: Readonly<Record<string, string>> }
  /** The connection breaks behind so many bytes of the body. */
  | { readonly cutAfter: number }
  /** The body of an earlier answer. */
  | { readonly body: string };

export interface Asked {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
}

export interface ObjectStorage {
  /** To be given to `--endpoint`. */
  readonly endpoint: string;
  /** Keys that it accepts. */
  readonly keys: Readonly<Record<string, string>>;
  readonly bucket: string;
  /** All requests since the last `reset`. */
  readonly asked: readonly Asked[];
  put(key: string, content: string | Buffer): Promise<void>;
  remove(key: string): Promise<void>;
  /** Decides what requests meet from now on; a fault may come after something was done. */
  meet(fault: (asked: Asked) => Fault | undefined | Promise<Fault | undefined>): void;
  reset(): void;
}

const keys = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };

/** For one test file. */
export function useObjectStorage(bucket: string): ObjectStorage {
  const storage = objectStorage(bucket);
  beforeAll(storage.start);
  afterAll(storage.stop);
  return storage;
}

export interface OwnObjectStorage extends ObjectStorage {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * s3rver behind a proxy that adds what it lacks: a look at signatures, If-Match, and the faults of a store. It is a process
 * of its own, because it encrypts where a listing goes on with a cipher that Node has only when asked for it.
 */
export function objectStorage(bucket: string): OwnObjectStorage {
  const folder = mkdtempSync(join(tmpdir(), 'adtally-objects-'));
  const asked: Asked[] = [];
  let fault: Parameters<ObjectStorage['meet']>[0] = () => undefined;
  let behind = '';
  // s3rver overwrites an object where it lies, and meanwhile shows a part of it under the ETag from before.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
  const proxy = createServer((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = '', url: path = '', headers } = incoming;
    asked.push({ method, path, headers });
    // Without a known key s3rver refuses it by itself; it looks at no signature.
    const isKnown = headers.authorization?.includes(`Credential=${keys.AWS_ACCESS_KEY_ID}/`);
    if (isKnown && !isSigned({ method, path, headers }, keys.AWS_SECRET_ACCESS_KEY)) {
      return refuse(outgoing, { status: 403, code: 'SignatureDoesNotMatch' });
    }
    const met = await fault({ method, path, headers });
    if (met && 'status' in met) return refuse(outgoing, met);
    if (met && 'body' in met) return void outgoing.end(met.body);
    const { found, body } = await inTurn(() => forward({ method, path, headers }));
    const match = headers['if-match'];
    if (match && found.headers.etag !== match) {
      return refuse(outgoing, { status: 412, code: 'PreconditionFailed' });
    }
    outgoing.writeHead(found.statusCode ?? 500, found.headers);
    if (!met || body.length < met.cutAfter) return void outgoing.end(body);
    outgoing.write(body.subarray(0, met.cutAfter), () => void outgoing.destroy());
  };
  const forward = async ({ method, path, headers }: Asked) => {
    const { port } = new URL(behind);
    const forwarded = request({ host: '127.0.0.1', port, method, path, headers }).end();
    const [found] = (await once(forwarded, 'response')) as [IncomingMessage];
    return { found, body: await buffer(found) };
  };
  let server: Command | undefined;
  const start = async () => {
    const bin = fileURLToPath(import.meta.resolve('s3rver/bin/s3rver.js'));
    const args = ['-d', folder, '-a', '127.0.0.1', '-p', '0', '--silent', '--no-vhost-buckets'];
    const legacy = '--openssl-legacy-provider';
    server = startProcess(process.execPath, [legacy, bin, ...args, '--configure-bucket', bucket]);
    const [, port] = await server.said(/listening on 127\.0\.0\.1:(\d+)/);
    behind = `http://127.0.0.1:${port}`;
    await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
  };
  const stop = async () => {
    proxy.closeAllConnections();
    proxy.close();
    await server?.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  };
  const client = new AwsClient({
    accessKeyId: 'S3RVER',
    secretAccessKey: 'S3RVER',
    service: 's3',
    region: 'us-east-1',
  });
  const change = async (method: string, key: string, more: RequestInit = {}) => {
    const url = `${behind}/${bucket}/${key.split('/').map(encodeURIComponent).join('/')}`;
    const { ok, status } = await inTurn(() => client.fetch(url, { method, ...more }));
    if (!ok) throw new Error(`${method} ${key}: ${status}`);
  };
  return {
    get endpoint() {
      return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    },
    ...{ keys, bucket, asked, start, stop },
    put: (key, content) => change('PUT', key, { body: content }),
    remove: (key) => change('DELETE', key),
    meet: (met) => {
      fault = met;
    },
    reset: () => {
      fault = () => undefined;
      asked.length = 0;
    },
  };
}

function refuse(
  response: ServerResponse,
  { status, code, headers }: { status: number; code: string; headers?: Readonly<Record<string, string>> },
): void {
  response.writeHead(status, headers);
  response.end(
    `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>-</Message></Error>`,
  );
}
