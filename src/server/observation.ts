import type { Code } from "@connectrpc/connect";
import type { StartedGeneration } from "../billing/caller.ts";
import type { CallTrace } from "../domain/call-trace.ts";
import { ForwardedTrace } from "../domain/trace-parent.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { HttpRoute, ServerTrace, StartTrace } from "../telemetry/server-trace.ts";
import { codeNameOf, isServerFailure, reasonOf, statusOf, writeCallLine } from "./call-line.ts";
import type { CallRecord, ChangedByOperator } from "./call-record.ts";
import type { Admitted } from "./gate/gate.ts";
import type { IncomingCall } from "./incoming-call.ts";
import { traceParentOf } from "./read-trace-parent.ts";

/** Starts the observation of a call. */
export type Observe = (call: IncomingCall, rpc: string, route?: HttpRoute) => Observation;

/** Collects the record of one call while it runs. No stage of the call reads it, except its trace and whether it failed. */
export class Observation {
  /** Undefined if the caller names no trace and this server exports none. */
  readonly trace: CallTrace | undefined;
  /** By performance.now(). */
  readonly startedAt: number;
  readonly #call: IncomingCall;
  readonly #route: HttpRoute | undefined;
  readonly #report: (record: CallRecord) => void;
  #rpc: string;
  #admitted: Admitted | undefined;
  #model: string | undefined;
  #generation: StartedGeneration | undefined;
  #change: ChangedByOperator | undefined;
  #failure: unknown;

  constructor(start: ObservationStart, report: (record: CallRecord) => void) {
    this.trace = start.trace;
    this.startedAt = start.startedAt;
    this.#call = start.call;
    this.#rpc = start.rpc;
    this.#route = start.route;
    this.#report = report;
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  setRpc(rpc: string): void {
    this.#rpc = rpc;
  }

  setAdmitted(admitted: Admitted): void {
    this.#admitted = admitted;
  }

  setModel(model: string): void {
    this.#model = model;
  }

  setGeneration(generation: StartedGeneration): void {
    this.#generation = generation;
  }

  setChange(change: ChangedByOperator): void {
    this.#change = change;
  }

  setFailure(failure: unknown): void {
    this.#failure = failure;
  }

  /** Call this once, with the code that was sent; a failure determines the code if there is one. */
  end(code: Code | 0): void {
    const endedAtMs = performance.now();
    this.#report({
      call: this.#call,
      rpc: this.#rpc,
      route: this.#route,
      trace: this.trace,
      admitted: this.#admitted,
      model: this.#model,
      generation: this.#generation,
      change: this.#change,
      failure: this.#failure,
      code,
      endedAtMs,
      seconds: (endedAtMs - this.startedAt) / 1000,
    });
  }
}

type ObservationStart = Pick<Observation, "trace" | "startedAt"> & {
  readonly call: IncomingCall;
  readonly rpc: string;
  readonly route: HttpRoute | undefined;
};

type ObserverOptions = {
  readonly log: Log;
  readonly metrics: Metrics;
  /** Undefined if this server exports no traces. */
  readonly startTrace: StartTrace | undefined;
};

/**
 * Counts, logs and traces each finished call: its key, what it used, how it ended, how long it took. The log line and
 * the span of a metered call wait for its settlement, which may come after the caller disconnects.
 */
export function createObserver({ log, metrics, startTrace }: ObserverOptions): Observe {
  return (call, rpc, route) => {
    const startedAt = performance.now();
    const parent = traceParentOf(call);
    const exported = startTrace?.(parent, startedAt);
    const trace = exported ?? (parent && new ForwardedTrace(parent));
    return new Observation({ call, rpc, route, trace, startedAt }, (record) => {
      const code = codeNameOf(record);
      countCall(metrics, record, code);
      const finish = () => {
        if (record.generation) countCharge(metrics, record);
        writeCallLine(log, record, code);
        if (exported) endTrace(exported, record, code);
      };
      if (record.generation) record.generation.onSettled(finish);
      else finish();
    });
  };
}

function countCall(metrics: Metrics, record: CallRecord, code: string): void {
  const { call, rpc, model, failure, seconds } = record;
  const { protocol } = call;
  metrics.calls.inc([rpc, protocol, code]);
  metrics.latency.observe([rpc, protocol], seconds);
  if (model !== undefined) metrics.modelCalls.inc([model, code]);
  if (failure !== undefined && call.policy.access === "developer") metrics.failures.inc([reasonOf(failure)]);
}

function countCharge(metrics: Metrics, { generation, model = "" }: CallRecord): void {
  const charge = generation?.charge;
  if (!charge) return;
  metrics.charges.inc([model], Number(charge.amountMicros));
  const { input, cachedInput, cacheWrite, output, reasoning } = charge.usage;
  countTokens(metrics, model, "input", input);
  countTokens(metrics, model, "cached_input", cachedInput);
  countTokens(metrics, model, "cache_write", cacheWrite);
  countTokens(metrics, model, "output", output);
  countTokens(metrics, model, "reasoning", reasoning);
}

function countTokens(metrics: Metrics, model: string, kind: string, tokens: number): void {
  if (tokens > 0) metrics.tokens.inc([model, kind], tokens);
}

function endTrace(trace: ServerTrace, record: CallRecord, code: string): void {
  const { call, admitted, failure, generation } = record;
  trace.end({
    rpc: record.rpc,
    protocol: call.protocol,
    route: record.route,
    code,
    status: statusOf(failure, code),
    reason: failure === undefined ? undefined : reasonOf(failure),
    isServerFailure: isServerFailure(code),
    requestId: call.requestId,
    accountId: admitted?.key?.accountId,
    keyId: admitted?.key?.keyId,
    operatorId: admitted?.operator?.id,
    model: record.model,
    generationId: generation?.id,
    charge: generation?.charge,
    endedAtMs: record.endedAtMs,
  });
}
