import type { GenerationRequest } from "../../billing/generation-request.ts";
import type { Format } from "../../domain/prompt.ts";

type Embedding = {
  readonly format: Format;
  readonly model: string;
  readonly texts: readonly string[];
  /** The field of each text, if they are not `input[0]`, `input[1]` and so on. */
  readonly fields?: readonly string[];
  readonly dimensions: number | undefined;
  readonly user: string;
};

/** Each text is a message, so that it is counted and sent like any other input. */
export function embeddingRequestOf({ texts, dimensions, ...rest }: Embedding): GenerationRequest {
  return {
    ...rest,
    messages: texts.map((content) => ({ role: "user", content })),
    maxTokens: undefined,
    temperature: undefined,
    stop: [],
    options: { task: { kind: "embed", dimensions } },
    maxCostMicros: undefined,
  };
}
