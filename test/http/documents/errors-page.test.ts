import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { en } from '../../../src/app/words/en.ts';
import { ConfigError, loadConfig } from '../../../src/config/config.ts';
import { problems, receiveProblems } from '../../../src/http/request/problems.ts';

const page = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8');

test('docs/errors.md lists every problem code with its status and meaning', () => {
  const expected = Object.entries({ ...problems, ...receiveProblems }).map(
    ([code, { status, when }]) => `| ${status} | \`${code}\` | ${when} |`,
  );
  expect(page.split('\n').filter((line) => /^\| [45]\d\d /.test(line))).toEqual(expected);
});

test('docs/errors.md lists every reason for which nobody is signed in', () => {
  const part = page.split(/^## /m).find((each) => each.startsWith('Signing in')) ?? '';
  const reasons = [...part.matchAll(/^\| `(\w+)` \|/gm)].map(([, reason]) => reason);
  expect(reasons).toEqual(Object.keys(en.signIn.failures));
});

test('docs/errors.md shows configuration errors as they are printed', () => {
  const examples = [...page.matchAll(/^error: (([A-Z_]+)(?:=(.*?))?: .+)$/gm)];
  expect(examples.length).toBeGreaterThan(10);
  for (const [, message, name = '', value = 'ftp://x'] of examples) {
    expect(() => loadConfig({ [name]: value })).toThrow(new ConfigError(message));
  }
});
