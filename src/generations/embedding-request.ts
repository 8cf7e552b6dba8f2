import type { ApiCall } from "../api/define-service.ts";
import type { Format } from "../domain/prompt.ts";
import { MAX_VALUES } from "./check-request.ts";
import type { GenerationRequest } from "./generation-request.ts";

/** Of one vector, if the request does not say. */
const USUAL_DIMENSIONS = 1_536;
/** As a float, and in the base64 of an upstream. */
const BYTES_PER_VALUE = 10;
/** In the base64 and the JSON of the stored answer, and in the statement that stores it. */
const STORED_BYTES_PER_VALUE = 16;

type EmbeddingRequest = {
  readonly format: Format;
  readonly model: string;
  readonly texts: readonly string[];
  /** The field of each text, if they are not `input[0]`, `input[1]` and so on. */
  readonly fields?: readonly string[];
  readonly dimensions: number | undefined;
  readonly user: string;
};

/** Each text is a message, so that it is counted and sent like any other input. Reserves the memory of the vectors. */
export function embeddingRequestOf({ texts, dimensions, ...rest }: EmbeddingRequest, call: ApiCall): GenerationRequest {
  const bytesPerValue = BYTES_PER_VALUE + (call.idempotencyKey === undefined ? 0 : STORED_BYTES_PER_VALUE);
  call.reserveMemory(bytesPerValue * Math.min(texts.length * (dimensions ?? USUAL_DIMENSIONS), MAX_VALUES));
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
