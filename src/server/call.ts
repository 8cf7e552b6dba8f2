import { type DescMessage, type DescMethod, getOption, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { selected_by as selectedBy } from "../../gen/vx/options/v1/options_pb.js";
import type { ApiCall, BoundMethod, Member, RequestCheck } from "../api/define-service.ts";
import type { BodyShare } from "../codec/body-budget.ts";
import type { Action, Actor } from "../database/action.ts";
import type { CallTrace } from "../domain/call-trace.ts";
import { containsKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { turnToEnd } from "../domain/fairness.ts";
import { networkOf } from "../domain/network.ts";
import type { Operator } from "../domain/operator.ts";
import type { StartedGeneration } from "../generations/generation-request.ts";
import type { AdmittedKey, RateWindow } from "../keys/admit.ts";
import { actionOf } from "../operators/operator-action.ts";
import { maxBodyBytesOf } from "../rules/body-limits.ts";
import { type Policy, PolicyError } from "../rules/policy.ts";
import type { HttpRoute } from "../telemetry/telemetry.ts";
import { contentLengthOf, headerValues, isClosed, type RequestHead, remoteAddressOf } from "./http/message.ts";

export type Protocol = "grpc" | "grpc-web" | "connect" | "rest";

/** A method with everything that can be prepared before its first call. */
export type ServedMethod = {
  /** "vx.v1.MeService/GetMe", or "none" for an address without a route. */
  readonly rpc: string;
  /** "GetMe" */
  readonly name: string;
  readonly input: DescMessage;
  /** The field of the request with which REST selects the method; empty if none does. */
  readonly selectedBy: string;
  readonly isStream: boolean;
  readonly policy: Policy;
  readonly maxBodyBytes: number;
  /** Only over REST. */
  readonly check?: RequestCheck | undefined;
  readonly invoke: BoundMethod;
};

export type PrepareOptions = {
  readonly policies: ReadonlyMap<DescMethod, Policy>;
  /** The configured limit; a method whose rules allow less has a lower one. */
  readonly maxBodyBytes: number;
};

export function prepareMethod(method: DescMethod, invoke: BoundMethod, { policies, maxBodyBytes }: PrepareOptions): ServedMethod {
  const rpc = `${method.parent.typeName}/${method.name}`;
  const policy = policies.get(method);
  if (!policy) throw new PolicyError(`${rpc} is served but has no policy`);
  if (policy.metered !== (typeof invoke !== "function"))
    throw new PolicyError(`${rpc} must be declared as metered if it generates, and only then`);
  return {
    rpc,
    name: method.name,
    input: method.input,
    selectedBy: getOption(method, selectedBy),
    isStream: method.methodKind !== "unary",
    policy,
    maxBodyBytes: maxBodyBytesOf(method.input, maxBodyBytes),
    invoke,
  };
}

/** Who makes a call, as the credential proved it. */
export type Admitted = {
  /** The caller, as the database proves it again for a change. */
  readonly actor: Actor;
  /** Undefined on the operator listener, and for methods of members that concern no account. */
  readonly key?: AdmittedKey;
  /** Only for methods of members. */
  readonly member?: Member;
  /** Only on the operator listener. */
  readonly operator?: Operator;
  /** Undefined if the method is not rate limited. */
  readonly window?: RateWindow | undefined;
  /** Whether the window has no slot for the call. */
  readonly isOverLimit?: boolean;
  /** Throws if the credential is no longer valid, or lacks the right to the method by now. Takes no slot of a window. */
  readonly recheck: () => Promise<unknown>;
  /** The same for a key; returns it as it is now. Only for methods of keys. */
  readonly readmit?: () => Promise<AdmittedKey>;
};

/** What authentication reads of a request. */
export type Credentials = Pick<Call, "target" | "headers" | "remoteAddress">;

export function credentialsOf(request: RequestHead): Credentials {
  return {
    target: request.url ?? "",
    remoteAddress: remoteAddressOf(request),
    headers: (name) => headerValues(request, name),
  };
}

const NONE: readonly string[] = [];

/** What a response is written to: a response of node:http or node:http2, or a stream of HTTP/2. */
export type Channel = {
  readonly writableEnded: boolean;
  /** Only on an HTTP/2 stream: whether it was reset. Its `writableEnded` is true after a reset as well. */
  readonly aborted?: boolean;
  readonly headersSent: boolean;
  write(piece: string | Uint8Array): boolean;
  once(event: "close" | "drain", listener: () => void): unknown;
  off(event: "close" | "drain", listener: () => void): unknown;
};

/**
 * A call from its arrival to its end: its request and response in its protocol, which the classes in wire/ read and write, and what the
 * stages of the chain add to it. Most calls never need the signal, so its AbortController and the timer of the deadline are created on
 * demand.
 */
export abstract class Call<Method extends ServedMethod = ServedMethod> implements ApiCall {
  abstract readonly protocol: Protocol;
  /** Over REST, the body may select another method of the address. */
  method: Method;
  readonly requestId: string;
  /** Read in the constructor: a closed connection has no address. */
  readonly remoteAddress: string;
  readonly request: RequestHead;
  readonly #channel: Channel;
  /** By performance.now(). */
  readonly #deadlineMs: number | undefined;
  #aborted: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Why the server aborted the call. */
  #abortReason: DomainError | undefined;
  #isAbortSent = false;

  /** By performance.now(). */
  readonly startedAt = performance.now();
  /** Undefined if the caller names no trace and this server exports none. */
  trace: CallTrace | undefined = undefined;
  /** Set by the stage that authenticates. */
  admitted: Admitted | undefined = undefined;
  /** Rejects when the deadline passes; undefined if the caller set none. */
  deadlinePassed: Promise<never> | undefined = undefined;
  /** The memory of the request; set by the stage that reads it. */
  share: BodyShare | undefined = undefined;
  message: Message | undefined = undefined;
  /** The response of a unary method, or its promise, or the responses of a stream. */
  result: unknown = undefined;
  /** For the log line: the model and the generation of a metered call, and what an operator changes. */
  model: string | undefined = undefined;
  generation: StartedGeneration | undefined = undefined;
  change: { readonly target: string; readonly amountMicros: bigint | undefined } | undefined = undefined;
  /** Why the call failed; undefined if it succeeded, or if only its code is known. */
  failure: unknown = undefined;

  constructor(method: Method, request: RequestHead, channel: Channel, requestId: string, timeoutMs: number | undefined) {
    this.method = method;
    this.request = request;
    this.requestId = requestId;
    this.remoteAddress = remoteAddressOf(request);
    this.#channel = channel;
    this.#deadlineMs = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
  }

  /** Reads and decodes the request within the limits of the .proto and of the share. The message must not refer to bytes that are freed. */
  abstract read(share: BodyShare): Message | Promise<Message>;
  /** Sends the result of a unary method: before it returns, the headers must be sent; otherwise the caller counts as disconnected. */
  abstract respond(result: unknown): Promise<void> | undefined;
  /** Sends the headers of a stream before its first message. The service calls it. */
  abstract startStream(): void;
  /**
   * Sends the results of a streaming method, as fast as the caller reads them. Ends the iterator when the caller disconnects, and throws
   * CallerDisconnected. Throws an error of the stream after it has been sent.
   */
  abstract respondWithStream(results: AsyncIterable<unknown>): Promise<void>;
  /** Sends the error in place of the response. Has no effect on a response that is complete or has an error. */
  abstract sendError(error: DomainError | ConnectError): Promise<void> | undefined;
  /** Has no effect once the headers of the response are sent. */
  abstract setHeader(name: string, value: string): void;

  get key(): AdmittedKey {
    return this.#require(this.admitted?.key, "a key");
  }

  get operator(): Operator {
    return this.#require(this.admitted?.operator, "an operator");
  }

  get member(): Member {
    return this.#require(this.admitted?.member, "a session");
  }

  get actor(): Actor {
    return this.#require(this.admitted, "a credential").actor;
  }

  get action(): Action {
    return actionOf(this.actor, this.methodName, this.requestId, {});
  }

  get isLogged(): boolean {
    return this.policy.logged;
  }

  get methodName(): string {
    return this.method.name;
  }

  get idempotencyKey(): string | undefined {
    return idempotencyKeyOf(this);
  }

  async recheck(): Promise<void> {
    await this.admitted?.recheck();
  }

  nameAccount(id: string): void {
    this.setHeader("x-vx-account", id);
  }

  recordChange(target: string, amountMicros: bigint | undefined): void {
    this.change = { target, amountMicros };
  }

  reportIgnored(names: string): void {
    this.setHeader("x-vx-ignored", names);
  }

  reserveMemory(bytes: number): void {
    this.share?.reserve(bytes);
  }

  get policy(): Policy {
    return this.method.policy;
  }

  get maxBodyBytes(): number {
    return this.method.maxBodyBytes;
  }

  get acceptsKeyHeader(): boolean {
    return false;
  }

  get target(): string {
    return this.request.url ?? "";
  }

  get contentLength(): number | undefined {
    return contentLengthOf(this.request);
  }

  /** Only over REST. */
  get route(): HttpRoute | undefined {
    return undefined;
  }

  headers(name: string): readonly string[] {
    // Absent headers are frequent, and reading all names costs more.
    if (this.request.headers[name] === undefined) return NONE;
    return headerValues(this.request, name);
  }

  get headersSent(): boolean {
    return this.#channel.headersSent;
  }

  /** Whether the response is complete, or cannot be completed because the caller disconnected. */
  get isDone(): boolean {
    return this.#channel.writableEnded || isClosed(this.#channel);
  }

  /** Aborted when the caller disconnects, the deadline passes or the server stops. */
  get signal(): AbortSignal {
    this.#aborted ??= this.#createController();
    return this.#aborted.signal;
  }

  /** Milliseconds until the deadline; undefined if the caller set none. */
  remainingMs(): number | undefined {
    return this.#deadlineMs === undefined ? undefined : this.#deadlineMs - performance.now();
  }

  /** If the signal was requested, its user ends the call; otherwise the error is sent here. */
  abort(reason: DomainError): void {
    this.#abortReason = reason;
    if (this.#aborted) {
      this.#aborted.abort(reason);
      return;
    }
    this.#isAbortSent = true;
    void this.sendError(reason);
  }

  /** The error that abort() sent in place of the response. */
  get abortError(): DomainError | undefined {
    return this.#isAbortSent ? this.#abortReason : undefined;
  }

  /** Wait for this before a call ends because its caller has disconnected. */
  turnToEnd(): Promise<void> {
    return turnToEnd(networkOf(this.remoteAddress));
  }

  /** Call this when the service has returned. */
  stopDeadline(): void {
    if (this.#timer) clearTimeout(this.#timer);
  }

  #require<Value>(value: Value | undefined, name: string): Value {
    if (value === undefined) throw new Error(`${this.method.rpc} was called without ${name}`);
    return value;
  }

  #createController(): AbortController {
    const aborted = new AbortController();
    if (this.#abortReason !== undefined) aborted.abort(this.#abortReason);
    const onClose = () => {
      const { aborted: wasReset, writableEnded } = this.#channel;
      const isIncomplete = wasReset ?? !writableEnded;
      if (!isIncomplete) return;
      const abort = () => aborted.abort(new ConnectError("the caller disconnected", Code.Canceled));
      void this.turnToEnd().then(abort);
    };
    if (isClosed(this.#channel)) onClose();
    else this.#channel.once("close", onClose);
    this.#startDeadline(aborted);
    return aborted;
  }

  #startDeadline(aborted: AbortController): void {
    const remainingMs = this.remainingMs();
    if (remainingMs === undefined) return;
    const onDeadline = () => aborted.abort(new ConnectError("the operation timed out", Code.DeadlineExceeded));
    if (remainingMs <= 0) onDeadline();
    else this.#timer = setTimeout(onDeadline, remainingMs);
  }
}

const MAX_KEY_LENGTH = 255;

/** The key that makes a call safe to repeat, quoted or bare; undefined if the caller sent none. */
function idempotencyKeyOf(call: Call): string | undefined {
  const given = call.headers("idempotency-key");
  const other = call.headers("request_id");
  if (given.length + other.length === 0) return undefined;
  const values = [...given, ...other];
  const keys = new Set(values.map(unquoted));
  const [key] = keys;
  if (keys.size > 1 || key === undefined) throw invalidKey("must be sent once");
  if (key === "" || key.length > MAX_KEY_LENGTH) throw invalidKey(`must have 1 to ${MAX_KEY_LENGTH} characters`);
  if (!/^[\x20-\x7e]+$/.test(key)) throw invalidKey("must be printable ASCII");
  // The key is stored.
  if (containsKey(key)) throw invalidKey("must not contain an API key");
  return key;
}

/** Unquotes a structured-field string, "…" with \" and \\ in it; any other value is used unchanged. */
function unquoted(value: string): string {
  const text = value.trim();
  const inner = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1];
  return inner === undefined ? text : inner.replace(/\\(["\\])/g, "$1");
}

function invalidKey(description: string): DomainError {
  return DomainError.ofField("idempotency-key", description);
}
