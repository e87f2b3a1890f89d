import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { fileError, InputError } from '../../../ingest/input/input-error.ts';
import { checkManifest } from '../../close/manifest.ts';
import { keysOfSet, type PublicKey, publicKeyOf } from '../../close/signature.ts';
import { keysOf } from '../../config/signing.ts';
import { counted, line, say } from '../command/command.ts';

/** `check-manifest`, which needs no store. */
export function addCheckManifest(program: Command): void {
  program
    .command('check-manifest')
    .description('check that rows and manifest of a close fit, and who signed them; needs no store')
    .argument('<rows>', 'a file with what closes rows printed')
    .argument('<manifest>', 'a file with what closes manifest printed')
    .option(
      '--keys <where>',
      'a file (PEM or JWKS) or an address (https or http) of the public keys, such as https://ads.example.com/.well-known/jwks.json; without it the signature is not checked',
    )
    .action(async (rows: string, manifest: string, { keys }: { readonly keys?: string }) => {
      const known = keys === undefined ? undefined : await readKeys(keys);
      const said = await readFile(manifest).catch(named(manifest));
      const checked = await checkManifest(bytesOf(rows), said, known).catch((error: Error) => {
        throw error instanceof InputError
          ? error
          : new Error(`${manifest}: ${error.message}`, { cause: error });
      });
      const whose = `${checked.account_id} ${checked.month}`;
      // Whoever wrote the manifest chose its texts.
      say(line([`${rows} has the ${counted(checked.rows, 'row')} of ${whose} that ${manifest} tells`]));
      say(
        checked.signer !== undefined
          ? `signed with the key ${checked.signer}`
          : checked.signed_by === null
            ? 'it is not signed: anybody can have written it'
            : `its signature was not checked: --keys names the keys of whoever shall have signed`,
      );
    });
}

/** Opens the file when it is read, so that somebody hears that it is missing. */
async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file);
  } catch (error) {
    named(file)(error);
  }
}

const named = (file: string) => (cause: unknown) => {
  throw fileError(file, cause);
};

async function readKeys(where: string): Promise<PublicKey[]> {
  const text = /^https?:/.test(where)
    ? await fetched(where)
    : await readFile(where, 'utf8').catch(named(where));
  try {
    return text.includes('-----BEGIN') ? keysOf(text).publicKeys.map(publicKeyOf) : keysOfSet(text);
  } catch (cause) {
    throw new Error(`${where} has no keys: give PEM or a JWKS`, { cause });
  }
}

async function fetched(address: string): Promise<string> {
  const answer = await fetch(address, { redirect: 'error' }).catch((error: Error) => {
    // The error itself says no more than that it failed; where a name has several addresses its cause has only a code.
    const { message, code } = Object(error.cause);
    throw new Error(`${address}: ${message || code || error.message}`, { cause: error });
  });
  if (!answer.ok) throw new Error(`${address} answers ${answer.status}`);
  return answer.text();
}
