import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { OpenApiDocument } from '../../../src/http/openapi/model.ts';
import { reportFormats } from '../../../src/report/formats.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);
const mediaTypes = Object.values(reportFormats).map(({ mediaType }) => mediaType);

let document: OpenApiDocument;
beforeAll(async () => {
  document = JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
});

describe('the page', () => {
  let response: Response;
  let page: string;
  beforeAll(async () => {
    response = await fetch(`${service.url}/docs`);
    page = await response.text();
  });

  test('names every endpoint, field, code and media type', () => {
    const codes = JSON.stringify(document.components.schemas.Problem?.properties?.code);
    const fields = Object.values(document.components.schemas).flatMap(({ required = [] }) => required);
    const text = page.replace(/<script>.*<\/script>/s, '');
    const named = [...Object.keys(document.paths), ...mediaTypes, ...fields, ...JSON.parse(codes).enum];
    expect(named.filter((name) => !text.includes(name))).toEqual([]);
    expect(text.match(/undefined|\[object/g)).toBeNull();
  });

  test('loads nothing and may load nothing, but runs its own script and style', () => {
    const loading = /(?:src|href|action)\s*=\s*["']?(?:https?:)?\/\/|\burl\(|@import|import\(/gi;
    expect(page.match(loading)).toBeNull();
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/default-src 'none'/);
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    for (const [, element, text = ''] of page.matchAll(/<(script|style)>(.*?)<\/\1>/gs)) {
      expect(policy).toContain(
        `${element}-src 'sha256-${createHash('sha256').update(text).digest('base64')}'`,
      );
    }
    expect(page.match(/localStorage|sessionStorage|cookie|indexedDB| style=| on[a-z]+=/g)).toBeNull();
  });
});

test.each(['/docs', '/openapi.json'])(
  '%s needs no token and is sent again only when it changed',
  async (name) => {
    const response = await fetch(`${service.url}${name}`);
    expect(response.status).toBe(200);
    const text = await response.text();
    expect(text.length).toBeGreaterThan(10_000);
    for (const coding of ['br', 'gzip']) {
      const packed = await fetch(`${service.url}${name}`, { headers: { 'accept-encoding': coding } });
      expect(packed.headers.get('content-encoding')).toBe(coding);
      expect(await packed.text()).toBe(text);
    }
    const plain = await fetch(`${service.url}${name}`, { headers: { 'accept-encoding': 'identity' } });
    expect([plain.headers.get('content-encoding'), await plain.text()]).toEqual([null, text]);
    const tag = response.headers.get('etag') ?? '';
    expect((await fetch(`${service.url}${name}`, { headers: { 'if-none-match': tag } })).status).toBe(304);
  },
);

test.each(['/docs', '/app', '/openapi.json', '/healthz', '/readyz', '/metrics'])(
  '%s takes GET alone, and says so',
  async (name) => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const refused = await fetch(`${service.url}${name}`, { method });
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
      expect(await refused.json()).toMatchObject({ code: 'method_not_allowed' });
    }
    expect((await fetch(`${service.url}${name}`, { method: 'HEAD' })).status).toBe(200);
    expect(document.paths[name]?.get?.responses).toHaveProperty('405');
  },
);
