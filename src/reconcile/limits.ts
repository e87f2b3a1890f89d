/** The most bytes of a file that is compared over HTTP. */
export const maxFileBytes = 8 << 20;
/** Rows that an answer over HTTP lists. */
export const mostRows = 1_000;
