import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { ApiCall } from "../api/define-service.ts";
import type { Caller, GenerationStart } from "../billing/generation-request.ts";
import type { BodyShare } from "../codec/body-budget.ts";
import { containsKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import type { Operator } from "../domain/operator.ts";
import { digestOfRequest } from "../rules/request-digest.ts";
import type { AdmittedKey } from "../store/admit.ts";
import type { Exchange, IncomingCall } from "./call.ts";
import { type Admitted, setLimitHeaders } from "./gate/gate.ts";
import type { Observation } from "./observation.ts";

/** A call in the form that services get. */
export class ServiceCall implements ApiCall {
  readonly exchange: Exchange;
  readonly #admitted: Admitted;
  readonly #observation: Observation;
  readonly #share: BodyShare;

  constructor(exchange: Exchange, admitted: Admitted, observation: Observation, share: BodyShare) {
    this.exchange = exchange;
    this.#admitted = admitted;
    this.#observation = observation;
    this.#share = share;
  }

  get key(): AdmittedKey {
    const { key } = this.#admitted;
    if (!key) throw new Error(`${this.exchange.method.rpc} was called without a key`);
    return key;
  }

  get operator(): Operator {
    const { operator } = this.#admitted;
    if (!operator) throw new Error(`${this.exchange.method.rpc} was called without an operator`);
    return operator;
  }

  async recheckOperator(): Promise<void> {
    await this.#admitted.recheck?.();
  }

  get method(): string {
    return this.exchange.method.name;
  }

  get requestId(): string {
    return this.exchange.requestId;
  }

  get idempotencyKey(): string | undefined {
    return idempotencyKeyOf(this.exchange);
  }

  recordChange(target: string, amountMicros: bigint | undefined): void {
    this.#observation.setChange({ target, amountMicros });
  }

  startStream(): void {
    this.exchange.startStream();
  }

  get signal(): AbortSignal {
    return this.exchange.signal;
  }

  caller(desc: DescMessage, request: Message): Caller {
    if (!this.exchange.policy.metered)
      throw new Error(`${this.exchange.method.rpc} is not declared as metered`);
    const { exchange, idempotencyKey } = this;
    const { rpc } = exchange.method;
    const observation = this.#observation;
    return {
      requestId: exchange.requestId,
      trace: observation.trace,
      key: this.key,
      idempotency:
        idempotencyKey === undefined
          ? undefined
          : { key: idempotencyKey, digest: () => digestOfRequest(rpc, desc, request) },
      signal: exchange.signal,
      endReason: () => endReasonOf(exchange),
      onModel: (modelId) => observation.setModel(modelId),
      onStart: (start) => this.#start(start),
    };
  }

  #start({ generation, loweredMaxTokens, minuteLimits }: GenerationStart): void {
    const { exchange } = this;
    if (generation) {
      this.#observation.setGeneration(generation);
      // A generation can outlive its call and keeps the prompt in memory.
      this.#share.retain();
      generation.onSettled(() => this.#share.release());
    } else exchange.setHeader("idempotency-replayed", "true");
    if (loweredMaxTokens !== undefined) exchange.setHeader("x-vx-max-tokens", String(loweredMaxTokens));
    if (minuteLimits.length > 0) setLimitHeaders(exchange, this.#admitted.window, minuteLimits);
  }
}

/** The gRPC code with which a deadline aborts a signal. */
const DEADLINE_EXCEEDED = 4;

/** A disconnect in the last second before the deadline counts as the deadline: the caller's clock started earlier. */
const DEADLINE_SLACK_MS = 1_000;

/**
 * Why the signal of a call was aborted: the deadline passed, the server stops, or the caller disconnected.
 */
function endReasonOf(exchange: Exchange): ReturnType<Caller["endReason"]> {
  const { reason } = exchange.signal;
  if (reason instanceof DomainError) return "unavailable";
  if ((reason as { code?: unknown }).code === DEADLINE_EXCEEDED) return "deadline_exceeded";
  const remainingMs = exchange.remainingMs() ?? Number.POSITIVE_INFINITY;
  return remainingMs < DEADLINE_SLACK_MS ? "deadline_exceeded" : "disconnected";
}

const MAX_LENGTH = 255;

/** The key that makes a call safe to repeat, quoted or bare; undefined if the caller sent none. */
function idempotencyKeyOf(call: Pick<IncomingCall, "headers">): string | undefined {
  const given = call.headers("idempotency-key");
  const other = call.headers("request_id");
  if (given.length + other.length === 0) return undefined;
  const values = [...given, ...other];
  const keys = new Set(values.map(unquoted));
  const [key] = keys;
  if (keys.size > 1 || key === undefined) throw invalid("must be sent once");
  if (key === "" || key.length > MAX_LENGTH) throw invalid(`must have 1 to ${MAX_LENGTH} characters`);
  if (!/^[\x20-\x7e]+$/.test(key)) throw invalid("must be printable ASCII");
  // The key is stored.
  if (containsKey(key)) throw invalid("must not contain an API key");
  return key;
}

/** Unquotes a structured-field string, "…" with \" and \\ in it; any other value is used unchanged. */
function unquoted(value: string): string {
  const text = value.trim();
  const inner = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1];
  return inner === undefined ? text : inner.replace(/\\(["\\])/g, "$1");
}

function invalid(description: string): DomainError {
  return DomainError.ofField("idempotency-key", description);
}
