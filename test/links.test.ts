import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Documents below a folder, as paths from the root. */
const documentsIn = (folder: string): string[] =>
  readdirSync(root + folder, { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (entry.isDirectory()) return /^(\.|node_modules$)/.test(entry.name) ? [] : documentsIn(path);
    return path.endsWith('.md') ? [path] : [];
  });

const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

test('links between documents lead to files and headings that exist', () => {
  const links = documentsIn('').flatMap((from) =>
    [...readFileSync(root + from, 'utf8').matchAll(/\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?\)/g)].map(
      ([, path, anchor]) => ({ from, to: path ? posix.join(posix.dirname(from), path) : from, anchor }),
    ),
  );
  expect(links.length).toBeGreaterThan(100);
  const dead = links.filter(
    ({ to, anchor }) =>
      !existsSync(root + to) || (anchor && !anchorsOf(readFileSync(root + to, 'utf8')).includes(anchor)),
  );
  expect(dead).toEqual([]);
});
