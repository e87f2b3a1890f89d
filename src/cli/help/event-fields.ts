import type { Command } from 'commander';
import { eventTypes, type FieldKind, type FieldSpec, fieldSpecs } from '../../../catalog/events.ts';
import { formatNumber } from '../command/command.ts';

const words: Readonly<Record<FieldKind, (spec: FieldSpec) => string>> = {
  text: ({ maxChars = 0 }) => `text of at most ${maxChars} characters`,
  time: () => '2026-01-31T12:00:00Z or like it, a day, or seconds or milliseconds since 1970',
  type: () => eventTypes.join(', '),
  count: ({ range = [0, 0] }) => `whole number from ${range.map(formatNumber).join(' to ')}`,
  money: () => 'decimal of at most 12 digits before the point and 6 behind it; corrections are negative',
  flag: () => 'true or false',
};

/** Writes what an event may consist of below the help of the command that loads events. */
export function addEventFields(command: Command): void {
  command.addHelpText('after', () => {
    const width = Math.max(...Object.keys(fieldSpecs).map((name) => name.length));
    const lines = Object.entries(fieldSpecs).map(
      ([name, spec]) => `  ${name.padEnd(width)}  ${words[spec.kind](spec)}`,
    );
    return `
Columns of CSV, TSV, Parquet and Avro, and members of NDJSON, have the names of the fields of an event:
${lines.join('\n')}
Every event needs event_time; event_type or a count; and advertiser_id with campaign_id, publisher_id with ad_unit_id,
or both pairs. A field that is left out is empty, 0 or false; quantity is 1 then, and device is unknown.`;
  });
}
