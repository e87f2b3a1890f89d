import { Readable } from 'node:stream';
import { ClickHouseError } from '@clickhouse/client';
import type { Store } from '../../../clickhouse/client.ts';
import { connectionError, type Program, type Server } from './server.ts';
import type { Answer, Statement } from './state.ts';
import type { SimulatedTime } from './time.ts';

/** What happens to a statement, beside that it takes its time. */
export const faultKinds = [
  /** It never arrives. */
  'lost',
  /** The connection breaks, and it is done all the same, by and by. */
  'cut off',
  /** It is done, and nobody is told. */
  'answer lost',
  'late',
  'refused',
  /** Of a mutation: ClickHouse says that it is done, and has changed nothing. */
  'not applied',
  'killed before it',
  'killed while it is under way',
  'killed behind it',
  'paused behind it',
  'engine dies before it',
  'engine dies while it works',
  'engine dies behind it',
] as const;

export type FaultKind = (typeof faultKinds)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** How long it takes, or lasts. */
  readonly ms: number;
}

export interface ConnectionOptions {
  readonly time: SimulatedTime;
  readonly server: Server;
  readonly program: Program;
  /** Milliseconds that something takes on its way. */
  readonly way: () => number;
  /** Of the nth statement, from 0. */
  readonly faultOf: (n: number) => Fault | undefined;
  readonly onStatement?: (statement: Statement, answer: Answer) => void;
}

/** The client of a program. */
export function connected({ time, server, program, way, faultOf, onStatement }: ConnectionOptions): Store {
  let sent = 0;
  const die = () => {
    if (program.dead) return;
    program.dead = true;
    program.onDeath();
  };
  const send = (statement: Statement) =>
    new Promise<readonly object[]>((resolve, reject) => {
      const { kind, ms = 0 } = faultOf(sent++) ?? {};
      let told = false;
      const tell = (answer: Answer) =>
        time.in(
          way(),
          () => {
            if (told) return;
            told = true;
            if (answer instanceof Error) reject(answer);
            else resolve(answer);
          },
          program,
        );
      const arrive = (inMs: number, lasts: boolean) =>
        time.in(inMs, () => {
          if (kind === 'engine dies before it') server.die(ms % longestAwayMs);
          if (kind === 'not applied' && / (DELETE|UPDATE) /.test(statement.query)) return tell([]);
          server.receive(statement, program, (answer) => {
            onStatement?.(statement, answer);
            if (kind === 'killed behind it') die();
            if (kind === 'paused behind it' && !deletes.test(statement.query))
              program.pausedUntil = time.now + ms;
            if (kind === 'engine dies behind it') server.die(ms % longestAwayMs);
            tell(kind === 'answer lost' ? connectionError('ECONNRESET') : answer);
          });
          if (kind === 'engine dies while it works' && lasts)
            time.in(way() * 2, () => server.die(ms % longestAwayMs));
        });
      if (kind === 'killed before it') return die();
      if (kind === 'lost') return void tell(connectionError('ECONNRESET'));
      if (kind === 'refused') return void tell(refusal());
      if (kind === 'cut off') tell(connectionError('ECONNRESET'));
      // Not behind its repetition: what a proxy keeps, and lets go when its caller has gone on, is not among what is promised.
      arrive(
        kind === 'late' ? ms : Math.min(way(), kind === 'cut off' ? 100 : Number.POSITIVE_INFINITY),
        true,
      );
      if (kind === 'killed while it is under way') die();
    });
  const settings = (given: object | undefined) => (given ?? {}) as Statement['settings'];
  const client = {
    query: async ({ query, query_params: params = {}, clickhouse_settings }: Asked) => {
      const rows = await send({
        query: inLine(query),
        params,
        settings: settings(clickhouse_settings),
        data: none,
      });
      return { json: async () => rows };
    },
    command: async ({ query, query_params: params = {}, clickhouse_settings }: Asked) => {
      await send({ query: inLine(query), params, settings: settings(clickhouse_settings), data: none });
    },
    exec: async ({ query, values, query_params: params = {}, clickhouse_settings }: Asked) => {
      const body = Buffer.concat(await Readable.from(values ?? []).toArray());
      const [statement = ''] = /^[\s\S]*? FORMAT \w+\n/.exec(`${body}`) ?? [];
      const data = body.subarray(Buffer.byteLength(statement));
      await send({
        query: inLine(`${query} ${statement}`),
        params,
        settings: settings(clickhouse_settings),
        data,
      });
      return { stream: Readable.from([]), summary: { written_rows: '0' } };
    },
    address: { url: 'simulated:', user: '', password: '', database: 'simulated' },
  };
  return client as unknown as Store;
}

interface Asked {
  readonly query: string;
  readonly values?: Readable;
  readonly query_params?: Record<string, unknown>;
  readonly clickhouse_settings?: object;
}

/** While a chunk is taken back nothing holds back a loader that sleeps: that nothing comes of it is not promised. */
const deletes =
  /^(ALTER TABLE \w+ DELETE|KILL|SELECT DISTINCT batch|SELECT 1 FROM (events|chunk_days|rejected_rows))/;

const none = Buffer.alloc(0);

/** Statements without white space that means nothing; those that come often are remembered. */
const lines = new Map<string, string>();
function inLine(query: string): string {
  const known = lines.get(query) ?? query.replace(/\s+/g, ' ').trim();
  if (lines.size < 500) lines.set(query, known);
  return known;
}

/** A load that hears nothing for ten seconds has to go behind others, and is not to fail of that. */
const longestAwayMs = 20_000;

/** What no later attempt is made for. */
const refusal = () =>
  new ClickHouseError({ message: 'Memory limit exceeded', code: '241', type: 'MEMORY_LIMIT_EXCEEDED' });
