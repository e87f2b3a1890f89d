import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { Hono, type Context as HttpContext, type MiddlewareHandler } from 'hono';
import * as z from 'zod';
import { formats } from '../../ingest/formats/formats.ts';
import { heldInput } from '../../ingest/input/held-input.ts';
import { requireJson } from '../http/report/request-body.ts';
import type { Room } from '../http/request/body-room.ts';
import type { HttpEnv } from '../http/request/env.ts';
import { onPath } from '../http/request/on-path.ts';
import { formatOfBody } from '../http/request/sent-file.ts';
import { type Context, type FileOperation, type Operation, perform, Rows } from '../operations/operation.ts';
import { operations } from '../operations/operations.ts';
import { fieldOf, fromWords } from '../operations/values.ts';
import { judged, parsedJson, textOf } from '../report/invalid-request.ts';
import { readBody } from './body.ts';

export interface OperationDeps
  extends Pick<Context, 'store' | 'links' | 'answerTrustMs' | 'signingKey'>,
    Required<Pick<Context, 'signal'>> {
  readonly room: Room;
  /** Lets operators pass. */
  readonly authenticated: MiddlewareHandler<HttpEnv>;
  /** @throws {Problem} when nothing can be done now */
  readonly requireReady: () => Promise<void>;
  /** Keeps the store open until it has ended, also when its caller has left. */
  readonly watch: <T>(work: Promise<T>) => Promise<T>;
}

/** `/v1/token/create` */
export const pathOf = ({ name }: Operation | FileOperation): string => `/v1/${name.replaceAll(' ', '/')}`;
export const methodOf = ({ changes }: Operation | FileOperation) => (changes === 'nothing' ? 'GET' : 'POST');

const takesJson = (operation: Operation | FileOperation) =>
  methodOf(operation) === 'POST' && !('file' in operation);
const nothing = { input: z.strictObject({}) };

/** The operations of the command line for programs: what only looks by GET, the others by POST. */
export function operationRoutes(deps: OperationDeps): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  for (const operation of operations) {
    const allow = methodOf(operation) === 'GET' ? 'GET, HEAD' : 'POST';
    const before = takesJson(operation) ? [deps.authenticated, requireJson] : [deps.authenticated];
    onPath(app, pathOf(operation), { allow }, ...before, (c) => answer(c, operation, deps));
  }
  return app;
}

async function answer(
  c: HttpContext<HttpEnv>,
  operation: Operation | FileOperation,
  { store, links, answerTrustMs, signingKey, room, requireReady, signal, watch }: OperationDeps,
): Promise<Response> {
  await requireReady();
  const who = c.get('account');
  const by = { who, token: c.get('token') ?? '' };
  const context = { store, links, answerTrustMs, signingKey, by, signal };
  const parameters = fromWords(operation, parametersOf(c, operation));
  if (takesJson(operation)) judged(nothing, parameters);
  const place = room.enter(who);
  try {
    const format = 'file' in operation ? formatOfBody(c.req.header('content-type')) : undefined;
    const body = methodOf(operation) === 'POST' ? await readBody(c.env, place) : undefined;
    const input = judged(operation, format || !body ? parameters : parsedJson(textOf(body)));
    const file = format &&
      body && { input: heldInput(`the body of ${who}`, formats[format].endings.slice(0, 1), body) };
    const done = await watch(perform(operation, context, input, file));
    if (!(done instanceof Rows)) return c.json(Object(done));
    const type = { 'content-type': done.mediaType };
    // Nobody would read its rows.
    if (c.req.method === 'HEAD') return c.body(null, 200, type);
    return c.body(Readable.toWeb(await begun(done)) as ReadableStream, 200, type);
  } finally {
    place.leave();
  }
}

/** Of lists all values; a parameter that comes twice is no text. */
export function parametersOf(
  c: HttpContext<HttpEnv>,
  { input }: Pick<Operation, 'input'>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(c.req.queries()).map(([name, values]) => {
      const field = fieldOf(input, name);
      const isList = field !== undefined && z.safeParse(field, values).success;
      return [name, isList || values.length > 1 ? values : values[0]];
    }),
  );
}

/** The rows, once there is a first one: until then a failure can still be told. */
async function begun(rows: Rows): Promise<Readable> {
  const out = new PassThrough();
  const written = rows.write(out).then(() => void out.end());
  await Promise.race([written, once(out, 'readable')]);
  written.catch((error: Error) => out.destroy(error));
  return out;
}
