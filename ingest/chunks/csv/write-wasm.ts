import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import wabt from 'wabt';

const folder = new URL('.', import.meta.url);
/** The program of ordinary.wat as it is run; `npm run csv-scanner` writes it. */
export const wasmFile = new URL('ordinary-wasm.ts', folder);

/** What that file is to be. */
export async function assembled(): Promise<string> {
  const text = await readFile(new URL('ordinary.wat', folder), 'utf8');
  const { parseWat } = await wabt();
  const { buffer } = parseWat('ordinary.wat', text, { simd: true }).toBinary({});
  return `/** The program of ordinary.wat. Written by npm run csv-scanner. */
export const wasm =
  '${Buffer.from(buffer).toString('base64')}';
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeFile(wasmFile, await assembled());
