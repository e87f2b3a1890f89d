/** What `zstd` made of 40 lines, checksum included; Node 20 cannot pack it. */
export const zstd = (): Buffer =>
  Buffer.from(
    [
      'KLUv/QRopQoAtlY4GIBNsQGo2BgANwSMwVppZXf3ZnnSWDljnD8ALAAsAPO8PNpSS6mctbSAyXgWxaA4MBxKQFEsEA7HocFIIBgR',
      'wswys5wGNIIaAX6uLMohgXgElFEWxYAoPBQHyEGRBOk9TTQXIuqR8WlL6lH9nMt2ljxLpx6kvJ3rv6o7s8pWPWak57q9vPMwsdYB',
      'hF4tmvLPVnF9dLmHXsSz8iuLyqhKi17bvZZPo5VGJLRK7293c2kdiYxmkwGAyZk1yZRM/47aas16pkqmH5KpL9FeZ618/SYdVd+t',
      'Wp6VJg/vJx1+ffXKUagRICSZ4f2YA1A1SYsBEmAQaBA0CBoCZEz4/+8HBXKvbDDfhBVciZVSVBUQl8JFF7yWpacM6kjxWpSri6/M',
      'RbqAq5zlLs7WLFp5hStTC2LrJTYvt7rLsyWsUAuvWKnqJMoK3IXkLfom+yFMRfLtDwrKP5g=',
    ].join(''),
    'base64',
  );

/** What {@link zstdFrames} hold: more than one block. */
export const framedText = (): string =>
  Array.from({ length: 20_000 }, (_, n) => `line ${n % 100}\n`).join('');

/** What `zstd` made of it, by its options; `-` is what it made of a pipe, which leaves out the size. */
export const zstdFrames: Readonly<Record<string, Buffer>> = {
  '-3': Buffer.from(
    [
      'KLUv/aQwaQIArAMAkgYQELCncAdpGAB2RUSktLToQAwzMzMzMyIiIiIi////v23btt22bduSJEmS27ZtmyRJkhQRERERI3c5xRAACAoD',
      'QmaoIL5uwJPKNRJIwOjb////z9v8GQEhWDSpZD+txEggesThRhiuRWSKflk8x9m6CNBSRQAACCABACzpDoTzaGMf',
    ].join(''),
    'base64',
  ),
  '-19': Buffer.from(
    [
      'KLUv/aQwaQIAxAMAEkcRDtDnpQ+OJCKllCn1JYoR4P////8YY4wxxhh3d3d3d2ZmZmZmVVVVVVVERERERLZt23bbtm1LkiRJfpwVuQzk',
      'FANEIKeYY6gQ+MLeAcCTyjUSkOHv////b+f8GRUwhVWEnESiSCA+4rARhotQWGEtHqWcMC0FTQAAAAEALWlM/66B82hjHw==',
    ].join(''),
    'base64',
  ),
  '-3 --no-check': Buffer.from(
    [
      'KLUv/aAwaQIArAMAkgYQELCncAdpGAB2RUSktLToQAwzMzMzMyIiIiIi////v23btt22bduSJEmS27ZtmyRJkhQRERERI3c5xRAACAoD',
      'QmaoIL5uwJPKNRJIwOjb////z9v8GQEhWDSpZD+txEggesThRhiuRWSKflk8x9m6CNBSRQAACCABACzpDoQ=',
    ].join(''),
    'base64',
  ),
  '-': Buffer.from(
    [
      'KLUv/QRY1AMA4kYREbAlOQfWYQrsXRGRsuVVKCgBVVVVVVVERERERDMzMzMz////v23btt22bduSJEmS27Ztm4iIiIgUzV1OxBgCARAQ',
      'YwiEZaggvv4GwJPKNRKQ0bf///+fAdv8GQEhCFkQsk9bYiQQPeKwEYbWIglFvyyOpUBo3VJFAAAIIAEALOkOhPNoYx8=',
    ].join(''),
    'base64',
  ),
};
