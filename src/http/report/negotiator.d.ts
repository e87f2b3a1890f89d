/** The part of negotiator 1 that is used; the published types are of a version without `preferred`. */
declare module 'negotiator' {
  export default class Negotiator {
    constructor(request: { headers: Record<string, string | undefined> });
    /** The best of `available` for the caller, by `accept`. */
    mediaType(available: readonly string[]): string | undefined;
    /** The best of `available` for the caller, by `accept-encoding`; among equally good ones the first of `preferred`. */
    encoding(available: readonly string[], options?: { preferred?: readonly string[] }): string | undefined;
  }
}
