/** Bytes that a file may have which is compared over HTTP. */
export const maxFileBytes = 8 << 20;
/** Rows that an answer over HTTP lists. */
export const mostRows = 1_000;
