import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { hasProgram } from '../support/programs.ts';

const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export interface TestBrowser {
  /** A tab of a person of its own: nothing is kept from others. What its script throws or logs fails the test. */
  open(address: string, options?: BrowserContextOptions): Promise<Page>;
  /** What pages have said since the test began, of errors and refused loads. */
  readonly complaints: string[];
}

/**
 * Debian's Chromium, one for the tests of a file. A page takes 2.6 s of CPU with windows, a third of it for menus that nobody
 * opens, and 0.8 s without; but without windows the mouse seems to leave the page after every tap.
 */
export function useBrowser({ withWindows = false } = {}): TestBrowser {
  const program = withWindows ? 'chromium' : 'chromium-headless-shell';
  let browser: Browser | undefined;
  const complaints: string[] = [];
  beforeAll(async () => {
    if (!hasProgram(program)) {
      throw new Error(`no Chromium for the tests of the page: apt-get install ${program}`);
    }
    browser = await chromium.launch({
      executablePath: `/usr/bin/${program}`,
      args: quiet,
      // Decides the order in which the parts of a date are typed.
      env: { ...process.env, LANGUAGE: 'en_US' },
    });
  });
  afterEach(async () => {
    for (const context of browser?.contexts() ?? []) await context.close();
    complaints.length = 0;
  });
  afterAll(() => browser?.close());
  return {
    complaints,
    open: async (address, options) => {
      if (!browser) throw new Error('the browser is there from beforeAll on');
      const context = await browser.newContext({
        locale: 'en-GB',
        viewport: { width: 1440, height: 900 },
        ...options,
      });
      context.setDefaultTimeout(40_000);
      const page = await context.newPage();
      page.on('pageerror', (error) => complaints.push(String(error)));
      page.on('console', (message) => {
        // That an answer is no 200 is told in red, too; the tests that ask for it look at what the page says.
        const { url } = message.location();
        if (message.type() === 'error' && !url.includes('/v1/')) complaints.push(message.text());
      });
      await page.goto(address);
      return page;
    },
  };
}
