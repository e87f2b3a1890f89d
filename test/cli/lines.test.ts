import { expect, test } from 'vitest';
import { createToken, listTokens } from '../../src/accounts/tokens.ts';
import { environmentOf, useCommands } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const commands = useCommands();

test('a label or an account cannot pass for another line, column or colour of the list', async () => {
  const account = 'a\tb\r\nc\u2028d';
  await createToken(db.store, { account, label: 'x\ny\u001b[31m' });
  const { stdout } = await commands.run(['token', 'list'], environmentOf(db.address));
  const [token] = await listTokens(db.store);
  expect(stdout).toBe(
    `${token?.id}\ta\\u0009b\\u000d\\u000ac\\u2028d\tx\\u000ay\\u001b[31m\t${token?.created}\t-\t-\t-\treport\n`,
  );
});
