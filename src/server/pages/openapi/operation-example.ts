/** A request in the document, and its response. The tests send each one to a server. */
export type OperationExample = {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | readonly string[]>>;
  readonly body?: unknown;
  readonly response: unknown;
  /** Set if no model of the server can run the example: a sentence for the description. */
  readonly missing?: string | undefined;
  /** The events of a streamed response to the same request. */
  readonly events?: readonly unknown[];
  /** Further requests to the same address, with their responses, by title. */
  readonly more?: Readonly<Record<string, { readonly body: unknown; readonly response: unknown }>>;
};
