import * as z from 'zod';
import { ownOperations, ownPath } from '../mails/own-schedules.ts';
import {
  answering,
  json,
  jsonProblems,
  limitHeaders,
  mailsTag,
  problemRefs,
  requestId,
  taking,
} from './messages.ts';
import type { Operation, PathItem } from './model.ts';
import { schemaOf } from './schemas.ts';

/** What an account does with the reports that it has sent by mail. */
export function schedulePaths(): Record<string, PathItem> {
  return Object.fromEntries(
    Object.entries(ownOperations).map(([name, operation]) => [
      ownPath(name),
      { ['input' in operation ? 'post' : 'get']: describe(name, operation) },
    ]),
  );
}

interface OwnOperation {
  readonly summary: string;
  readonly input?: z.ZodType;
  readonly answer: z.ZodType;
}

function describe(name: string, { summary, input, answer }: OwnOperation): Operation {
  return {
    operationId: `schedule_${name}`,
    tags: [mailsTag],
    summary,
    description: `${summary}.${name === 'create' ? ` ${asking}` : ''}`,
    parameters: [requestId],
    ...(input && { requestBody: taking(json(schemaOf(input))) }),
    responses: {
      ...answering('What came of it.', limitHeaders, json(schemaOf(z.strictObject({ result: answer })))),
      ...problemRefs(jsonProblems),
    },
  };
}

const asking =
  'Each recipient is asked once, by a mail, whether reports of the account may come, and gets those that are due after a yes. The schedule ends when the login token that made it is revoked. An account has 20 schedules and 50 recipients at most. Whoever gets no answer may send the same again: while an equal schedule is active, no other is made, and the answer has its id.';
