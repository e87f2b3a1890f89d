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
