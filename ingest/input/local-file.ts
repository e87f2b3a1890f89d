import { constants, createReadStream, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { endingsOf, type Input, type InputReader } from './input.ts';
import { fill, headBytes, readerOfBytes } from './pieces.ts';
import { readerOfStream } from './standard-input.ts';

/** Larger reads are no faster. */
const maxReadBytes = 8 << 20;

/** A file of this machine, or a named pipe. */
export class LocalFile implements Input {
  /** Its path. */
  readonly name: string;

  constructor(path: string) {
    this.name = path;
  }

  get endings(): readonly string[] {
    return endingsOf(this.name);
  }

  size(): number | undefined {
    const found = statSync(this.name);
    return found.isFile() ? found.size : undefined;
  }

  look(): { version: string; modified: Date } {
    const { size, ino, mtime, mtimeNs, ctimeNs } = statSync(this.name, { bigint: true });
    return { version: [size, ino, mtimeNs, ctimeNs].join(' '), modified: mtime };
  }

  async readFrom(start: number, signal?: AbortSignal): Promise<InputReader> {
    // Use stat rather than open: opening and closing a pipe would break its writer.
    const found = statSync(this.name);
    if (!found.isFile()) return readerOfStream(openStream(this.name, found.isFIFO()), signal);
    // To wait for each of several calls takes longer than what they do for a file of this size.
    if (found.size <= headBytes) {
      const whole = readFileSync(this.name).subarray(start);
      return readerOfBytes(whole, whole.length);
    }
    const handle = await open(this.name);
    // Of what was opened: another file may have its name by now.
    const written = () => {
      const { mtimeNs, size } = fstatSync(handle.fd, { bigint: true });
      return `${mtimeNs} ${size}`;
    };
    const before = written();
    let at = start;
    return {
      size: found.size - start,
      wasTouched: () => written() !== before,
      read: async (target) => {
        signal?.throwIfAborted();
        const { bytesRead } = await handle.read(target, 0, Math.min(target.length, maxReadBytes), at);
        at += bytesRead;
        return bytesRead;
      },
      close: () => handle.close(),
    };
  }

  async readRange(target: Buffer, start: number): Promise<number> {
    const { read, close } = await this.readFrom(start);
    return fill(target, read).finally(close);
  }
}

/** A named pipe is read as a socket: reading it as a file would block a thread, and the end of the process. */
function openStream(path: string, isPipe: boolean): Readable {
  if (!isPipe) return createReadStream(path);
  const { O_RDONLY, O_NONBLOCK } = constants;
  return new Socket({ fd: openSync(path, O_RDONLY | O_NONBLOCK), readable: true, writable: false });
}
