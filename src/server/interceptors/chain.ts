import type { BodyBudget } from "../../codec/body-budget.ts";
import type { Meter } from "../../generations/meter.ts";
import { authenticateKey, type KeyAuthentication } from "./authenticate-key.ts";
import { authenticateMember, type MemberAuthentication } from "./authenticate-member.ts";
import { authenticateOperator, type OperatorAuthentication } from "./authenticate-operator.ts";
import { deadline } from "./deadline.ts";
import type { AnyInterceptor, Interceptor, Serve } from "./interceptor.ts";
import { invoke } from "./invoke.ts";
import { limitRate } from "./limit-rate.ts";
import { meter } from "./meter.ts";
import { type ObserverOptions, observe } from "./observe.ts";
import { read } from "./read.ts";
import { validate } from "./validate.ts";

type Components = ObserverOptions & {
  /** The memory for the requests of all calls. */
  readonly budget: BodyBudget;
  /** Aborts the calls that are still running at the end of a drain. */
  readonly shutdownSignal: AbortSignal;
};

/** The life of a call with an API key, with the errors of each stage. */
export function chainOfKeys(c: Components & KeyAuthentication & { readonly meter: Meter }): AnyInterceptor[] {
  return [
    observe(c), // sends each error; one log line, metrics and a span for each call
    deadline(c.shutdownSignal), // 504, and 503 at the end of a drain
    authenticateKey(c), // 401, 403
    limitRate(), // 429
    read(c.budget), // 400, 413, 415
    validate(), // 400
    meter(c.meter), // 402, 429: hold, run, charge
    invoke(), // the method, and its response
  ];
}

/** The same for a person who is signed in to the customer page. */
export function chainOfMembers(c: Components & MemberAuthentication): AnyInterceptor[] {
  return [observe(c), deadline(c.shutdownSignal), authenticateMember(c), read(c.budget), validate(), invoke()];
}

/** The same for an operator. */
export function chainOfOperators(c: Components & OperatorAuthentication): AnyInterceptor[] {
  return [observe(c), deadline(c.shutdownSignal), authenticateOperator(c), read(c.budget), validate(), invoke()];
}

/** Serves calls with the stages, each of which calls the next one. */
export function compose(stages: readonly AnyInterceptor[]): Serve {
  return (stages as readonly Interceptor[]).reduceRight<Serve>(
    (next, stage) => stage(next),
    async () => undefined,
  );
}
