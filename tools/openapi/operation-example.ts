/** A request in the document, and its response. The tests send each one to a server. */
export type OperationExample = {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | readonly string[]>>;
  readonly body?: unknown;
  /** For a method that only streams, its first message. */
  readonly response: unknown;
  /** Says that no model of the server can run the example, at the end of the description. */
  readonly missing?: string;
  /** The events of a streamed response to the same request. */
  readonly events?: readonly unknown[];
  /** Further requests to the same address, with their responses, by title. */
  readonly more?: Readonly<Record<string, FurtherExample>>;
};

export type FurtherExample = { readonly summary: string; readonly body: unknown; readonly response: unknown };
