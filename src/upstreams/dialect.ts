import type { Prompt } from "../domain/prompt.ts";
import type { Answer } from "./http/response.ts";

/** How servers of one kind are asked and how their answers read. */
export type Dialect = {
  /** The address that is asked, below the path of the base URL. */
  path(basePath: string): string;
  headers(apiKey: string | undefined): Readonly<Record<string, string>>;
  /** What is sent, to be written as JSON. */
  body(prompt: Prompt, model: string): object;
  /** One per call. Both readers throw an UpstreamFailure for an answer that is none, or that tells of an error. */
  createReader(answer: Answer): AnswerReader;
};

export type AnswerReader = {
  /** The data of one server-sent event. */
  readEvent(data: string): void;
  /** The whole reply, from a server that does not stream although it was asked to. */
  readWhole(body: string): void;
};
