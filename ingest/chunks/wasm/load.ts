// Of the language, and not among Node's types.
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** What a program of programs.ts exports. */
export function loadProgram<Exports>(base64: string): Exports {
  const module = new WebAssembly.Module(Buffer.from(base64, 'base64'));
  return new WebAssembly.Instance(module).exports as Exports;
}
