import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type axe from 'axe-core';
import type { Page } from 'playwright-core';

const rules = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds in the page, or in one part of it: by all of its rules, or by some. */
export async function violations(
  page: Page,
  part = ':root',
  only: readonly string[] = [],
): Promise<string[]> {
  // As a script of the page its policy would refuse it: it comes in from outside, once.
  if (!(await page.evaluate(() => 'axe' in window))) {
    await page.evaluate((source) => new Function('module', 'exports', source)({}, {}), rules);
  }
  const results = await page.evaluate(
    ({ selector, only }) =>
      (window as unknown as { axe: typeof axe }).axe.run(
        selector,
        only.length > 0 ? { runOnly: [...only] } : {},
      ),
    { selector: part, only },
  );
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`),
  );
}

/** The same, and then what its rules of colours find in the dark. */
export async function violationsInBoth(page: Page, part?: string): Promise<string[]> {
  const found = await violations(page, part);
  await shownIn(page, 'dark');
  found.push(...(await violations(page, part, ['color-contrast', 'link-in-text-block'])));
  await shownIn(page, 'light');
  return found;
}

async function shownIn(page: Page, colorScheme: 'dark' | 'light'): Promise<void> {
  await page.emulateMedia({ colorScheme });
  // The script of the page hears of it with the next frame.
  await page.evaluate(() => new Promise(requestAnimationFrame));
}
