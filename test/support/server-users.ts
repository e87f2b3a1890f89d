import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkout } from './process.ts';

/** As it is where everybody is wanted. */
const users = readFileSync(join(checkout, 'clickhouse/config/server/users.xml'), 'utf8').replace(
  /<!--\s*(<sessions>.*?<\/sessions>)\s*-->/s,
  '$1',
);

/**
 * The users of a server, with the names of variables as passwords, for the configuration of an embedded one; and that it answers
 * everybody who logs in, as one that is not embedded does.
 */
export const serverUsers = `${users
  .replace(/<password from_env="(\w+)"\/>/g, '<password>$1</password>')
  .replace(/<(adtally|reporter|names)>(\s+<password>)/g, '<$1 replace="replace">$2')
  .replace(
    /^.*?<clickhouse>|<\/clickhouse>\s*$/gs,
    '',
  )}<http_handlers replace="replace"><defaults/></http_handlers>`;
