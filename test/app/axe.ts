import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type axe from 'axe-core';
import type { Page } from 'playwright-core';

const rules = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds in the page, or in one part of it. */
export async function violations(page: Page, part = ':root'): Promise<string[]> {
  // As a script of the page its policy would refuse it: it comes in from outside.
  const results = await page.evaluate(
    async ({ source, selector }) => {
      const module = { exports: {} as typeof axe };
      new Function('module', 'exports', source)(module, module.exports);
      return ((window as unknown as { axe: typeof axe }).axe ?? module.exports).run(selector);
    },
    { source: rules, selector: part },
  );
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`),
  );
}
