/** What the browser remembers of a person's taste: nothing of reports, and no token. */
export function remembered<T>(name: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(`adtally-${name}`);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    // Another page may not keep anything in a frame; taste is then that of the start.
    return otherwise;
  }
}

export function remember(name: string, value: unknown): void {
  try {
    localStorage.setItem(`adtally-${name}`, JSON.stringify(value));
  } catch {
    // As above: the page works without.
  }
}
