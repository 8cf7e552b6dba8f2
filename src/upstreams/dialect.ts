import type { Prompt, Task } from "../domain/prompt.ts";
import type { ReplyBuffer } from "./http/reply-buffer.ts";

/** The request and response format of one kind of server. */
export type Dialect = {
  /** The request path, given the path of the base URL. */
  path(basePath: string): string;
  headers(apiKey: string | undefined): Readonly<Record<string, string>>;
  /** The request body, before JSON encoding. */
  body(prompt: Prompt, model: string): object;
  /**
   * One reader per call, which writes the reply into the buffer. Both methods of the reader throw an
   * UpstreamFailure if the response is invalid or reports an error.
   */
  createReader(reply: ReplyBuffer, prompt: Prompt): ResponseReader;
  /** The lowest limit of output tokens that the API accepts. Lower limits are raised to it; the reply is cut here. */
  readonly minTokens?: number;
  /** The maximum size of a response that is not streamed, if it differs from the usual one. */
  readonly maxJsonBytes?: number;
};

/** How a kind of server is asked for replies and, if it can, for other tasks. */
export type Dialects = Dialect & { readonly tasks?: Readonly<Partial<Record<Task["kind"], Dialect>>> };

export type ResponseReader = {
  /** The data of one server-sent event. */
  readEvent(data: string): void;
  /** The complete reply of a server that does not stream. */
  readWhole(body: string): void;
};
