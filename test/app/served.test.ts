import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const service = useService(useStore());
const maxPackedBytes = 90_000;

describe('the page for people', () => {
  let response: Response;
  let page: string;
  beforeAll(async () => {
    response = await fetch(`${service.url}/app`);
    page = await response.text();
  });

  test(`has a script of less than ${maxPackedBytes} bytes, packed`, () => {
    const script = /<script>(.*)<\/script>/s.exec(page)?.[1] ?? '';
    const size = gzipSync(script, { level: 9 }).length;
    expect(size).toBeGreaterThan(20_000);
    expect(size, `the script has ${size} bytes`).toBeLessThan(maxPackedBytes);
  });

  test('loads nothing and may load nothing, but runs its own script and style', () => {
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/default-src 'none'/);
    expect(policy).toMatch(/frame-ancestors 'none'/);
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    const parts = [...page.matchAll(/<(script|style)>(.*?)<\/\1>/gs)];
    expect(parts).toHaveLength(2);
    for (const [, element, text = ''] of parts) {
      const hash = createHash('sha256').update(text).digest('base64');
      expect(policy).toContain(`${element}-src 'sha256-${hash}'`);
    }
    const markup = page.replace(/<(script|style)>.*?<\/\1>/gs, '');
    expect(markup.match(/(?:src|href)="(?!data:|\/docs")| style=| on[a-z]+=/g)).toBeNull();
  });

  test('comes packed, is sent again only when it changed, and / leads to it', async () => {
    const packed = await fetch(`${service.url}/app`, { headers: { 'accept-encoding': 'gzip' } });
    expect(packed.headers.get('content-encoding')).toBe('gzip');
    expect(await packed.text()).toBe(page);
    const tag = packed.headers.get('etag') ?? '';
    const again = await fetch(`${service.url}/app`, {
      headers: { 'accept-encoding': 'gzip', 'if-none-match': tag },
    });
    expect(again.status).toBe(304);
    const root = await fetch(service.url, { redirect: 'manual' });
    expect([root.status, root.headers.get('location')]).toEqual([302, '/app']);
  });
});

describe('of a network with its own name, colour and panel', () => {
  const own = useService(useStore(), {
    BRAND_NAME: 'Fjord & Sons',
    BRAND_COLOR: '#ffcc00',
    FRAME_ANCESTORS: 'https://panel.example.com, https://*.example.org:8443',
  });

  test('shows them, and may be framed by that panel alone', async () => {
    const response = await fetch(`${own.url}/app`);
    const page = await response.text();
    expect(page).toContain('Fjord &amp; Sons');
    // Yellow is made darker until texts of it can be read on white.
    expect(/--brand-light:(#\w{6})/.exec(page)?.[1]).not.toBe('#ffcc00');
    expect(/--brand-dark:(#\w{6})/.exec(page)?.[1]).toBe('#ffcc00');
    const policy = response.headers.get('content-security-policy');
    expect(policy).toMatch(/frame-ancestors https:\/\/panel\.example\.com https:\/\/\*\.example\.org:8443/);
    expect(response.headers.get('x-frame-options')).toBeNull();
  });

  test('shows them in the documentation, too, which no panel may frame', async () => {
    const response = await fetch(`${own.url}/docs`);
    const page = await response.text();
    expect(page).toContain('<a class="brand" href="/app">');
    expect(page).toContain('Fjord &amp; Sons</a>');
    expect(/--brand-dark:(#\w{6})/.exec(page)?.[1]).toBe('#ffcc00');
    const style = /<style>(.*?)<\/style>/s.exec(page)?.[1] ?? '';
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toContain(`'sha256-${createHash('sha256').update(style).digest('base64')}'`);
    expect(policy).toContain("frame-ancestors 'none'");
  });
});
