import { unreadablePart } from '../../../clickhouse/consistency/damaged-parts.ts';
import { isTransient } from '../../../clickhouse/retry.ts';
import { type FormatName, formats } from '../../../ingest/formats/formats.ts';
import { encodingNamed } from '../../../ingest/input/text.ts';
import { Problem } from './problems.ts';

/** By media type. */
const formatNames = new Map(
  Object.entries(formats).flatMap(([name, { mediaTypes }]) =>
    mediaTypes.map((mediaType) => [mediaType as string, name as FormatName]),
  ),
);
export const fileTypes = [...formatNames.keys()];

/** The format that `Content-Type` names. @throws {Problem} for another one, and for text that is not UTF-8 */
export function formatOfBody(contentType: string | undefined): FormatName {
  const [mediaType = '', ...parameters] = (contentType ?? '')
    .toLowerCase()
    .split(';')
    .map((each) => each.trim());
  const format = formatNames.get(mediaType);
  if (!format) {
    throw new Problem('unsupported_media_type', `the body needs a content-type: ${fileTypes.join(', ')}`, {
      headers: { 'Accept-Post': fileTypes.join(', ') },
    });
  }
  const charset = parameters
    .find((each) => each.startsWith('charset='))
    ?.slice(8)
    .replaceAll('"', '');
  if (charset !== undefined && !['utf-8', undefined].includes(encodingNamed(charset))) {
    throw new Problem('unsupported_media_type', `the text must be UTF-8, not ${charset}`);
  }
  return format;
}

/** What ClickHouse says of pages of Parquet that it cannot decode. Nothing that a full disk or little memory may cause. */
const undecodable = [
  'INCORRECT_DATA',
  'CANNOT_DECOMPRESS',
  'CANNOT_READ_ALL_DATA',
  'UNKNOWN_COMPRESSION_METHOD',
];

/** Whether the engine failed because the file is damaged, and not a part of a table or what another node was sending. */
export const isDamage = (error: unknown): boolean =>
  error instanceof Error &&
  'type' in error &&
  undecodable.includes(String(error.type)) &&
  !unreadablePart(error) &&
  !isTransient(error);
