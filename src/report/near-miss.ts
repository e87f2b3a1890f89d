import leven from 'leven';

/** The name that one which nobody knows was likely meant to be: but for a typing error, a word or the way it is written. */
export function meant(given: string, names: readonly string[]): string | undefined {
  // In a body `filters.device` is no field.
  const [head = ''] = given.slice(0, longest).split('.');
  const asked = plain(head);
  return names.find((name) => {
    const errors = leven(asked, plain(name));
    const most = name.length < 5 ? 0 : name.length < 9 ? 1 : 2;
    return errors <= most || name.split('_').some((word) => isTelling(word) && word === asked);
  });
}

/** Names are shorter, and the comparison takes the square of it. */
const longest = 40;

const plain = (name: string) => name.toLowerCase().replaceAll(/[_\s-]/g, '');
/** Others, such as `time` and `by`, may be fields of anybody's. */
const isTelling = (word: string) => word.length > 4;
