import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Writes a certificate of localhost that only its own authority knows, itself, and its key. */
export function certificateIn(folder: string): { readonly key: string; readonly cert: string } {
  const files = { key: join(folder, 'server.key'), cert: join(folder, 'server.crt') };
  execFileSync(
    'openssl',
    [
      ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'.split(' '),
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
      ...['-keyout', files.key, '-out', files.cert],
    ],
    { stdio: 'pipe' },
  );
  return files;
}
