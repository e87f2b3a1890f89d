import { flipBits } from '../../support/zstd-bits.ts';

flipBits(1);
