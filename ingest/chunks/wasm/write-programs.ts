import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import wabt from 'wabt';

const folder = new URL('.', import.meta.url);
/** The programs as they are run; `npm run wasm` writes it. */
export const programsFile = new URL('programs.ts', folder);

/** What that file is to be. */
export async function assembled(): Promise<string> {
  const { parseWat } = await wabt();
  const programs = ['checksum', 'ordinary'].map(async (name) => {
    const file = `${name}.wat`;
    const text = await readFile(new URL(file, folder), 'utf8');
    const { buffer } = parseWat(file, text, { simd: true }).toBinary({});
    return `/** The program of ${file}. */
export const ${name} =
  '${Buffer.from(buffer).toString('base64')}';
`;
  });
  return ['// Written by npm run wasm.\n', ...(await Promise.all(programs))].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeFile(programsFile, await assembled());
