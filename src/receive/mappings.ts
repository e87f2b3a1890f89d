import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Store } from '../../clickhouse/client.ts';
import { defaultMapping, MappingError, type ValidMapping } from '../../ingest/event/mapping.ts';
import { readMapping } from '../../ingest/mapping/read-mapping.ts';
import { validateMapping } from '../../ingest/mapping/validate-mapping.ts';
import { Problem } from '../http/request/problems.ts';

interface Known {
  readonly content: string;
  readonly mapping: Promise<ValidMapping>;
}

/** The mappings in the operator's folder, by name: `NAME.json`. One that is changed there holds from the next body on. */
export class Mappings {
  readonly #store: Store;
  readonly #folder: string | undefined;
  readonly #known = new Map<string, Known>();

  constructor(store: Store, folder: string | undefined) {
    this.#store = store;
    this.#folder = folder;
  }

  /**
   * @param name absent: columns are fields of the same name
   * @throws {Problem} when there is none of that name, and what is wrong with the mapping itself
   */
  async named(name: string | undefined): Promise<ValidMapping> {
    if (name === undefined) return defaultMapping;
    const content = await this.#contentOf(name);
    let known = this.#known.get(name);
    if (known?.content !== content) {
      known = { content, mapping: this.#valid(name, content) };
      this.#known.set(name, known);
    }
    try {
      return await known.mapping;
    } catch (error) {
      this.#known.delete(name);
      // The operator's, and not the sender's.
      throw error instanceof MappingError ? unusable(name, error) : error;
    }
  }

  async #valid(name: string, content: string): Promise<ValidMapping> {
    return validateMapping(this.#store, await readMapping({ mapping: { name: `${name}.json`, content } }));
  }

  async #contentOf(name: string): Promise<string> {
    // A name, and never a path.
    const isName = /^\w[\w.-]{0,99}$/.test(name);
    if (this.#folder === undefined || !isName) throw unknown(name);
    const folder = this.#folder;
    return readFile(join(folder, `${name}.json`), 'utf8').catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      // Without it, say where a disk is not there for a while, nobody knows which mappings there are.
      await requireFolder(folder);
      throw unknown(name);
    });
  }
}

/** @throws unless there is such a folder */
export async function requireFolder(folder: string): Promise<void> {
  const found = await stat(folder).catch(() => undefined);
  if (!found?.isDirectory()) throw new Error(`MAPPINGS_DIR=${folder} is no folder that can be read`);
}

function unusable(name: string, cause: MappingError): Problem {
  const detail = `the mapping ${name} cannot be used; the request id finds the reason in the log`;
  return new Problem('internal_error', detail, { cause });
}

function unknown(name: string): Problem {
  return new Problem('mapping_unknown', `there is no mapping ${name}`, { field: 'mapping' });
}
