/** An input file cannot be used. The message names the file and says why. */
export class InputError extends Error {}

/** An input is not any more what it was: it has to be read anew, from its beginning. */
export class InputChanged extends InputError {}

/** Whether a name that was listed seems to have bytes that are not UTF-8: Node.js finds no file by such a name. */
export function hasOtherBytes(file: string): boolean {
  return file.includes('\ufffd');
}

/** Whether nothing is there: no file of that name, or a link that leads nowhere. */
export const isOfNothing = ({ code }: NodeJS.ErrnoException): boolean =>
  code === 'ENOENT' || code === 'ELOOP';

/** What went wrong with a file, as an error that names it. Anything that is not an Error is returned as it is. */
export function fileError(file: string, cause: unknown): unknown {
  if (!(cause instanceof Error)) return cause;
  const Kind = cause instanceof InputChanged ? InputChanged : InputError;
  return new Kind(`${file}: ${describeFileError(file, cause)}`, { cause });
}

/** Does work with a file and returns its result. What goes wrong is thrown as an error that names the file. */
export async function naming<T>(file: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw fileError(file, cause);
  }
}

/** What went wrong with a file, in words. */
function describeFileError(file: string, { code, message }: NodeJS.ErrnoException): string {
  switch (code) {
    case 'ENOENT':
      return hasOtherBytes(file) ? 'its name is not UTF-8; rename it' : 'there is no such file';
    case 'ELOOP':
      return 'it is a link that leads to itself';
    case 'EACCES':
      return 'no permission to read it';
    case 'EISDIR':
      return 'it is a folder';
    case 'ENOTDIR':
      return 'it is neither a file nor a folder';
    case 'Z_BUF_ERROR':
      return 'the packed data ends too early: it is truncated';
    case 'Z_DATA_ERROR':
      return 'the gzip data is damaged';
    case 'ERR_ENCODING_INVALID_ENCODED_DATA':
      return `the ${nameIn(message)} text is damaged or truncated, or encoded in another way; save it as UTF-8`;
    default:
      // All error codes of brotli, whatever is wrong.
      return /^ERR_.*_ERROR_/.test(code ?? '') ? 'the brotli data is damaged' : message;
  }
}

/** The encoding that a message of TextDecoder names. */
function nameIn(message: string): string {
  return (/encoding (\S+)$/.exec(message)?.[1] ?? '').toUpperCase();
}
