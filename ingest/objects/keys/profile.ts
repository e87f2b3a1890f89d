import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface Profile {
  readonly name: string;
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * The profile of the files that the tools of AWS share; undefined where there is none.
 * @throws for one that AWS_PROFILE names and that is not there
 */
export async function profileOf(env: NodeJS.ProcessEnv): Promise<Profile | undefined> {
  const home = join(env.HOME || homedir(), '.aws');
  const name = env.AWS_PROFILE || env.AWS_DEFAULT_PROFILE || 'default';
  const config = await sectionsOf(env.AWS_CONFIG_FILE || join(home, 'config'));
  const secrets = await sectionsOf(env.AWS_SHARED_CREDENTIALS_FILE || join(home, 'credentials'));
  const own = [config.get(`profile ${name}`) ?? config.get(name), secrets.get(name)];
  if (own.every((section) => section === undefined)) {
    if (!env.AWS_PROFILE) return undefined;
    throw new Error(`there is no profile ${name} (AWS_PROFILE) in the files of ${home}`);
  }
  return { name, settings: { ...own[0], ...own[1] } };
}

async function sectionsOf(path: string): Promise<ReadonlyMap<string, Record<string, string>>> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw new Error(`${path} cannot be read (${error.code})`);
  });
  const sections = new Map<string, Record<string, string>>();
  let section: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const [, name] = /^\[\s*([^\]]*?)\s*\]/.exec(line) ?? [];
    if (name !== undefined) {
      section = sections.get(name) ?? {};
      sections.set(name, section);
    }
    // Lines that begin with a blank belong to a setting of another service.
    const [, key, value = ''] = /^([\w.-]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (key !== undefined) section[key.toLowerCase()] = value;
  }
  return sections;
}

/** The region of AWS that a store is in, as far as it is set. */
export async function regionOf(env: NodeJS.ProcessEnv): Promise<string> {
  const set = env.AWS_REGION || env.AWS_DEFAULT_REGION;
  const region = set || (await profileOf(env))?.settings.region || 'us-east-1';
  // It becomes part of a host name.
  if (!/^[a-z0-9-]+$/.test(region))
    throw new Error('the region is no name such as eu-central-1 (AWS_REGION)');
  return region;
}
