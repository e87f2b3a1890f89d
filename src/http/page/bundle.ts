import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The script and the style of the page, each as one text. */
interface Bundle {
  readonly script: string;
  readonly style: string;
}

/** Where `npm run build` puts it, beside this file. */
export const bundleFile = 'bundle.json';

/** The bundle of an installed build, or made from the sources of a checkout. */
export async function pageBundle(): Promise<Bundle> {
  const built = new URL(bundleFile, import.meta.url);
  return existsSync(built) ? (JSON.parse(readFileSync(built, 'utf8')) as Bundle) : buildBundle();
}

const sources = fileURLToPath(new URL('../../app/', import.meta.url));

/** Builds what runs in the browser from its sources, in memory: 0.1 s. Needs esbuild, which only a checkout has. */
export async function buildBundle(): Promise<Bundle> {
  const { build } = await import('esbuild');
  const bundle = async (entry: string, define: Record<string, string> = {}): Promise<string> => {
    const { outputFiles } = await build({
      entryPoints: [sources + entry],
      bundle: true,
      minify: true,
      write: false,
      format: 'iife',
      target: ['chrome111', 'firefox114', 'safari16.4'],
      charset: 'utf8',
      // Licences ask for their notices: they stay, at the end.
      legalComments: 'eof',
      define,
    });
    const [file] = outputFiles;
    if (!file) throw new Error(`${entry} builds to nothing`);
    return file.text.trim();
  };
  const worker = await bundle('rows/worker.ts');
  const [script, style] = await Promise.all([
    bundle('main.ts', { WORKER_SCRIPT: JSON.stringify(worker) }),
    bundle('style.css'),
  ]);
  // In an HTML page `</script` ends the script, even inside a string.
  return { script: script.replaceAll('</script', '<\\/script'), style };
}
