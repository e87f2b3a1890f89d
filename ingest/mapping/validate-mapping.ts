import { type EventField, fieldSpecs } from '../../catalog/events.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import type { CheckedExpression } from '../event/expressions.ts';
import {
  type EventSpec,
  MappingError,
  type MappingSpec,
  type ValidEvent,
  type ValidMapping,
} from '../event/mapping.ts';
import { readText } from '../event/values.ts';
import { checkCondition, checkExpression } from './check-expression.ts';
import { isVerdict } from './engine.ts';

/**
 * Holds a mapping against the engine, before anything is sent: its zone, its constants, its
 * expressions and its condition. Columns
 * are held against each file by `compileMapping`.
 * @throws {MappingError} that names the place and says what to do
 */
export async function validateMapping(
  store: Store,
  spec: MappingSpec,
  signal?: AbortSignal,
): Promise<ValidMapping> {
  const zone = spec.timezone;
  if (zone) await checkTimezone(store, zone.name, zone.place);
  const validOf = (event: EventSpec) => validEvent(store, spec, event, signal);
  const own = await validOf(spec);
  const { events, ...rest } = spec;
  const all: ValidEvent[] = [];
  for (const event of events ?? []) all.push(await validOf(event));
  return { ...rest, ...own, ...(events && { events: all }) };
}

async function validEvent(
  store: Store,
  spec: MappingSpec,
  event: EventSpec,
  signal: AbortSignal | undefined,
): Promise<ValidEvent> {
  const expressions = new Map<EventField, CheckedExpression>();
  for (const [field, { kind, text, place }] of event.sources) {
    signal?.throwIfAborted();
    if (kind === 'constant') await checkConstant(store, spec, field, text, place);
    if (kind === 'expression') expressions.set(field, await checkExpression(store, text, place));
  }
  signal?.throwIfAborted();
  const { where } = event;
  const condition = where && (await checkCondition(store, where.expression, where.place));
  return { ...event, expressions, ...(condition && { condition }) };
}

async function checkTimezone(store: Store, name: string, place: string): Promise<void> {
  await select(store, `SELECT toTimeZone(toDateTime(0, 'UTC'), ${quoted(name)})`).catch((error: unknown) => {
    if (!isVerdict(error)) throw error;
    throw new MappingError(`${place}: ${name} is no IANA time zone; give one such as Europe/Vienna or UTC`);
  });
}

/** A constant is judged as the text of a record is. */
async function checkConstant(
  store: Store,
  { roundMoney, dates }: MappingSpec,
  field: EventField,
  constant: string,
  place: string,
): Promise<void> {
  const { computed = [], rules } = readText(fieldSpecs[field], 'given', {
    reportTimezone: 'UTC',
    timezone: 'UTC',
    dates,
    roundMoney,
  });
  if (rules.length === 0) return;
  const broken = rules.map((rule) => `toUInt8(${rule.broken})`).join(', ');
  const [row] = await select<{ broken: number[] }>(
    store,
    `SELECT [${broken}] AS broken FROM (
       SELECT ${['given', ...computed.map(({ name, sql }) => `${sql} AS ${name}`)].join(', ')}
       FROM (SELECT materialize(${quoted(constant)}) AS given))`,
  );
  const rule = rules[row?.broken.indexOf(1) ?? -1];
  if (rule) throw new MappingError(`${place}: ${rule.reason}, not ${JSON.stringify(constant)}`);
}
