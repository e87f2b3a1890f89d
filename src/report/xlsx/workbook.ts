import { Transform, type TransformCallback } from 'node:stream';
import { strToU8, Zip, type ZipInputFile, ZipPassThrough } from 'fflate';
import { parts, sheetPath } from './parts.ts';

/** The beginning of gzip without a name or other fields (RFC 1952 §2.3), and what follows the deflated bytes. */
const gzipHead = Buffer.from([0x1f, 0x8b, 8, 0]);
const headBytes = 10;
const tailBytes = 8;

/** The time of a file in a zip, in local time: equal answers have equal bytes. */
const mtime = new Date(1980, 0, 1);

/**
 * Makes an xlsx file of a sheet's XML that is packed as gzip: a zip has the same deflated bytes, checksum and length, so
 * nothing is packed or unpacked here.
 */
export class Workbook extends Transform {
  readonly #zip = new Zip((error, piece) => (error ? this.destroy(error) : this.push(piece)));
  readonly #sheet: ZipInputFile = { filename: sheetPath, mtime, compression: 8, size: 0, crc: 0 };
  #held = Buffer.alloc(0);
  #hasBegun = false;

  constructor() {
    super();
    for (const [path, xml] of Object.entries(parts)) {
      const part = Object.assign(new ZipPassThrough(path), { mtime });
      this.#zip.add(part);
      part.push(strToU8(xml), true);
    }
    this.#zip.add(this.#sheet);
  }

  override _transform(piece: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#held = Buffer.concat([this.#held, piece]);
    if (!this.#hasBegun && this.#held.length >= headBytes) {
      if (!this.#held.subarray(0, gzipHead.length).equals(gzipHead)) {
        done(new Error('ClickHouse sent a sheet that is no plain gzip'));
        return;
      }
      this.#held = this.#held.subarray(headBytes);
      this.#hasBegun = true;
    }
    if (this.#hasBegun && this.#held.length > tailBytes) {
      this.#add(this.#held.subarray(0, -tailBytes), false);
      this.#held = this.#held.subarray(-tailBytes);
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    if (!this.#hasBegun || this.#held.length < tailBytes) {
      done(new Error('ClickHouse sent a sheet that is no whole gzip'));
      return;
    }
    this.#sheet.crc = this.#held.readUInt32LE(0);
    this.#sheet.size = this.#held.readUInt32LE(4);
    this.#add(new Uint8Array(), true);
    this.#zip.end();
    done();
  }

  #add(deflated: Uint8Array<ArrayBuffer>, isLast: boolean): void {
    this.#sheet.ondata?.(null, deflated, isLast);
  }
}
