/** The part of OpenAPI 3.1 that the document uses and the page reads. */
export interface OpenApiDocument {
  readonly openapi: '3.1.1';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly security: Operation['security'];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Named<PathItem>;
  readonly components: {
    readonly securitySchemes: Named<{
      readonly type: string;
      readonly scheme: string;
      readonly description: string;
    }>;
    readonly parameters: Named<Parameter>;
    readonly headers: Named<HeaderObject>;
    readonly schemas: Named<JsonSchema>;
    readonly responses: Named<ResponseObject>;
  };
  readonly 'x-limits'?: Limits;
}

type Named<Of> = Readonly<Record<string, Of>>;

/** What a caller must stay within. */
export interface Limits {
  /** How many requests an account has in a window. */
  readonly requests: number;
  readonly windowSeconds: number;
  readonly maxBodyBytes: number;
  /** The time limit of a report. */
  readonly timeoutSeconds: number;
  /** Reports that run at a time, of all accounts and of one, and how long others wait; the names are published. */
  readonly reports: { readonly most: number; readonly mostOfAccount: number; readonly waitSeconds: number };
  /** How fast an answer must be read while others wait, over that time. */
  readonly leastPace: { readonly bytesPerSecond: number; readonly seconds: number };
  /** How long an answer may stay unread. */
  readonly sendTimeoutSeconds: number;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'header' | 'path' | 'query';
  readonly required?: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
}

export type PathItem = Readonly<Partial<Record<'get' | 'head' | 'post', Operation>>>;

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  /** Present on an alias: the path it is the same as. */
  readonly 'x-alias-of'?: string;
  /** Empty: takes no login token. */
  readonly security?: readonly Named<readonly string[]>[];
  readonly parameters?: readonly (Reference | Parameter)[];
  readonly requestBody?: {
    readonly required: true;
    readonly description?: string;
    readonly content: Content;
  };
  readonly responses: Named<ResponseObject | Reference>;
}

export interface Reference {
  readonly $ref: string;
}

export interface ResponseObject {
  readonly description: string;
  readonly headers?: Named<Reference>;
  readonly content?: Content;
}

export type Content = Named<MediaType>;

export interface MediaType {
  readonly schema: JsonSchema;
  readonly example?: unknown;
  readonly examples?: Named<{ readonly summary: string; readonly value: unknown }>;
}

export interface HeaderObject {
  readonly description: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
  readonly example: string | number;
}

/** JSON Schema 2020-12, as OpenAPI 3.1 embeds it. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Named<JsonSchema>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
}
