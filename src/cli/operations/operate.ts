import { type Command, Option } from 'commander';
import * as z from 'zod';
import type { Store } from '../../../clickhouse/client.ts';
import { linksOf } from '../../accounts/links.ts';
import { commandLine } from '../../operations/audit.ts';
import {
  type FileOperation,
  type GivenFile,
  type Operation,
  perform,
  type Rows,
} from '../../operations/operation.ts';
import { fromWords } from '../../operations/values.ts';
import { InvalidRequest, judged } from '../../report/invalid-request.ts';
import { usage } from '../command/arguments.ts';
import { config, line, print, say, withReachableStore, withStore } from '../command/command.ts';

/** What was given to a command, by the names of the input of its operation, and its other options. */
export type Given = Readonly<Record<string, unknown>>;

/**
 * Adds the command of an operation: its input is the command's arguments, if they are named here, and options. What formats of
 * an answer there are, `--json` and `--csv` choose, and people get a table.
 */
export function addOperation(
  parent: Command,
  { name, summary, input }: Operation | FileOperation,
  named: readonly string[],
  act: (given: Given) => Promise<void>,
): Command {
  const command = parent.command(name.split(' ').at(-1) ?? '').description(summary);
  const { properties = {}, required = [] } = z.toJSONSchema(input, { io: 'input' });
  // A field that may be null has its description in the first of its alternatives.
  const fieldOf = (field: string): z.core.JSONSchema.BaseSchema => {
    const schema = Object(properties[field]);
    return { ...schema.anyOf?.[0], ...schema };
  };
  for (const field of named) {
    const { type, description } = fieldOf(field);
    const word = `${field}${type === 'array' ? '...' : ''}`;
    command.argument(required.includes(field) ? `<${word}>` : `[${word}]`, description);
  }
  /** Fields by what commander calls their options. */
  const fields = new Map<string, string>();
  for (const field of Object.keys(properties).filter((each) => !named.includes(each))) {
    const { type, title = field, description, enum: choices = [], default: standard } = fieldOf(field);
    if (field === 'format') {
      command.option('--json', 'print JSON');
      if (choices.includes('csv')) command.option('--csv', 'print CSV');
      continue;
    }
    const option = new Option(
      `--${field.replaceAll('_', '-')}${type === 'boolean' ? '' : ` <${title}>`}`,
      description,
    );
    fields.set(option.attributeName(), field);
    if (standard) option.default(standard);
    command.addOption(choices.length > 0 ? option.choices(choices.map(String)) : option);
  }
  return command.action(async () => {
    const words = command.registeredArguments.map((each, n) => [each.name(), command.processedArgs[n]]);
    const { json: _json, csv: _csv, ...opts } = command.opts();
    const options = Object.entries(opts).map(([name, value]) => [fields.get(name) ?? name, value]);
    // `loads show LOAD --json`: a command takes an option that it shares with the one below it.
    const { json, csv } = command.optsWithGlobals();
    const formats = fieldOf('format').enum ?? [];
    const format = csv ? 'csv' : !json ? 'table' : formats.includes('json') ? 'json' : 'ndjson';
    const chosen = formats.length > 0 ? { format } : { json };
    const given: Given = { ...Object.fromEntries([...options, ...words]), ...chosen };
    await act(given).catch((error: unknown) => {
      if (!(error instanceof InvalidRequest) || error.field === undefined) throw error;
      const [field = '', place] = error.field.split('.');
      if (!(field in properties)) throw error;
      const list = given[field];
      const what =
        place !== undefined && Array.isArray(list)
          ? `${field} ${JSON.stringify(list[Number(place)])}`
          : error.field;
      throw usage(`${named.includes(field) ? '' : '--'}${what}${error.message.slice(error.field.length)}`);
    });
  });
}

/** Adds the command of a list, which prints JSON or these lines of each item. */
export function addList<Shape extends z.ZodObject, Item extends object>(
  parent: Command,
  operation: Operation<Shape, Item[]>,
  linesOf: (item: Item) => readonly string[] = (item) => [line(Object.values(item))],
): Command {
  return addOperation(parent, operation, ['account'], (given) =>
    operate(operation, given, (list) => {
      if (given.json) return print(JSON.stringify(list));
      for (const each of list.flatMap(linesOf)) print(each);
    }),
  ).option('--json', 'print JSON');
}

interface OperateOptions {
  /** For what fills a store. */
  readonly mayBeNew?: boolean;
  readonly file?: GivenFile;
}

/**
 * Does what an operation does, and tells it. What only looks says what is known while shards are down.
 * @throws {InvalidRequest} where something given is wrong, before a store is opened
 */
export async function operate<Shape extends z.ZodObject, Answer>(
  operation: Operation<Shape, Answer> | FileOperation<Shape, Answer>,
  { json: _, ...given }: Given,
  tell: (answer: Answer) => void | Promise<void>,
  { mayBeNew = false, file }: OperateOptions = {},
): Promise<void> {
  const input = judged(operation, fromWords(operation, given));
  const work = async (store: Store) => tell(await performIn(store, operation, input, file));
  if (operation.answer === undefined) await withReachableStore(work);
  else await withStore(work, { mayBeNew });
}

/** The same in a store that is open. */
export async function performIn<Shape extends z.ZodObject, Answer>(
  store: Store,
  operation: Operation<Shape, Answer> | FileOperation<Shape, Answer>,
  input: z.output<Shape>,
  file?: GivenFile,
): Promise<Answer> {
  const { answerTrustMs, signing } = config();
  const context = {
    store,
    by: commandLine(),
    links: linksOf(config()),
    answerTrustMs,
    signingKey: signing?.signs,
    onWait: (other: string) => say(`waiting for load ${other}`),
  };
  return perform(operation, context, input, file);
}

/** Tells rows. */
export const printRows = (rows: Rows): Promise<void> => rows.write(process.stdout);
