import leven from 'leven';

/** Tells for a name that nobody knows which one it was likely meant to be: but for a typing error, a word or the way it is written. */
export function nearMiss(names: readonly string[]): (given: string) => string | undefined {
  // A body may have as many names as characters, so that what is known of these is computed once.
  const known = names.map((name) => ({
    name,
    text: plain(name),
    words: name.split('_').filter(isTelling),
    most: name.length < 5 ? 0 : name.length < 9 ? 1 : 2,
  }));
  return (given) => {
    // In a body `filters.device` is no field.
    const [head = ''] = given.slice(0, longest).split('.');
    const asked = plain(head);
    const near = known.find(
      ({ text, words, most }) =>
        (Math.abs(asked.length - text.length) <= most && leven(asked, text) <= most) || words.includes(asked),
    );
    return near?.name;
  };
}

/** Names are shorter, and the comparison takes the square of it. */
const longest = 40;

const plain = (name: string) => name.toLowerCase().replaceAll(/[_\s-]/g, '');
/** Others, such as `time` and `by`, may be fields of anybody's. */
const isTelling = (word: string) => word.length > 4;
