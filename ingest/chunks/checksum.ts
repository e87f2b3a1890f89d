import { crc32 } from 'node:zlib';

/** Tells bytes from others, as they are after a change. It names nothing: other bytes of the same checksum are easily made. */
export const checksumOf = (bytes: Buffer): string => `${bytes.length} ${crc32(bytes)}`;
