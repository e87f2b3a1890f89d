/** The part of flechette that reads messages, without the views over columns, which the page does not use: 4 KB less. */
declare module '@uwdata/flechette/src/decode/decode-ipc.js' {
  export interface Field {
    readonly name: string;
    readonly type: {
      readonly typeId: number;
      readonly bitWidth?: number;
      readonly scale?: number;
    };
  }

  export interface RecordBatch {
    readonly length: number;
    readonly nodes: readonly { readonly nullCount: number }[];
    readonly regions: readonly { readonly offset: number; readonly length: number }[];
    readonly compression?: unknown;
    readonly body: Uint8Array<ArrayBuffer>;
  }

  export function decodeIPCStream(messages: Uint8Array[]): {
    readonly schema?: { readonly fields: readonly Field[] };
    readonly records: readonly RecordBatch[];
  };
}
