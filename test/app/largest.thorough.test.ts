import { testLargest } from './largest-suite.ts';

testLargest({ days: 365, places: 120, measured: true });
