import { Circuit, type CircuitOptions, type CircuitState, type CircuitTools } from "./circuit.ts";
import type { UpstreamFailure } from "./failure.ts";

export type BreakerOptions = CircuitOptions & {
  /**
   * Consecutive failed calls of one account that open its own circuit; consecutive accounts with a failed call, or calls
   * without a connection, that open the shared one.
   */
  readonly maxFailures: number;
  /** A whole reply keeps the shared circuit closed for so long, however many accounts fail. */
  readonly proofMs: number;
};

/** Above it the oldest account with failures is forgotten. */
const MAX_ACCOUNTS = 4_096;

/** An account whose last call failed. */
type FailingAccount = { failures: number; readonly circuit: Circuit };

/** Failures since the last reply. */
type Run = { readonly accounts: Set<string>; unconnected: number };

/** The permission of one call to ask the upstream once. It ends with succeed, fail or leave. */
export type Pass = {
  readonly accountId: string;
  /** The circuit that it probes: the result opens or closes it. */
  probe: "none" | "own" | "shared";
  /** A later try of a call that failed before: failing again adds nothing. */
  readonly isRetry: boolean;
  /** What the beginning of the reply cleared; it counts again if the reply breaks off. */
  cleared:
    | { readonly run: Run; readonly account: FailingAccount | undefined; readonly atMs: number }
    | undefined;
};

/**
 * Keeps calls away from an upstream that is down, in two circuits. A failure after the request was sent may be due to its
 * prompt, so it opens the circuit of its own account only; the shared circuit opens when several accounts in a row fail,
 * or when no connection can be made, which no prompt can cause. While the shared circuit is open, so are the circuits of
 * all accounts whose last call failed.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  readonly #tools: CircuitTools;
  readonly #shared: Circuit;
  readonly #failing = new Map<string, FailingAccount>();
  #run: Run = newRun();
  #lastReplyMs = Number.NEGATIVE_INFINITY;

  constructor(options: BreakerOptions, tools: CircuitTools) {
    this.#options = options;
    this.#tools = tools;
    this.#shared = new Circuit(options, tools);
  }

  /** Of the circuit that all accounts share. */
  get state(): CircuitState {
    return this.#shared.state;
  }

  /** Accounts that are kept away by their own failures. */
  get openAccounts(): number {
    let count = 0;
    for (const { circuit } of this.#failing.values()) if (!circuit.isClosed) count++;
    return count;
  }

  /** Undefined when the call must not ask the upstream now. */
  enter(accountId: string, isRetry: boolean): Pass | undefined {
    const pass = (probe: Pass["probe"]): Pass => ({ accountId, probe, isRetry, cleared: undefined });
    // An account whose last call failed probes its own circuit, never the shared one.
    const own = this.#failing.get(accountId)?.circuit;
    const circuit = own ?? this.#shared;
    if (circuit.isClosed) return pass("none");
    return circuit.tryProbe() ? pass(own ? "own" : "shared") : undefined;
  }

  /** The reply has begun: the upstream answers, so other calls may ask it. */
  begin(pass: Pass): void {
    this.#endOutdatedProbe(pass);
    const account = this.#failing.get(pass.accountId);
    pass.cleared = { run: this.#run, account, atMs: this.#tools.now() };
    this.#run = newRun();
    account?.circuit.close();
    this.#failing.delete(pass.accountId);
    this.#closeShared();
  }

  /** The upstream gave a whole reply, or a refusal. */
  succeed(pass: Pass): void {
    this.#lastReplyMs = this.#tools.now();
    this.#run = newRun();
    this.#failing.delete(pass.accountId);
    this.#closeShared();
    this.#shared.reset();
  }

  fail(pass: Pass, failure: UpstreamFailure): void {
    this.#restore(pass);
    this.#endOutdatedProbe(pass);
    if (pass.probe === "shared") this.#openShared();
    if (failure.isUnconnected) this.#countUnconnected(pass);
    else this.#countAccount(pass);
  }

  /** The caller left before the upstream showed how it is. */
  leave(pass: Pass): void {
    if (pass.cleared) return;
    if (pass.probe === "shared") this.#shared.cancelProbe();
    if (pass.probe === "own") this.#failing.get(pass.accountId)?.circuit.cancelProbe();
  }

  /** The upstream has answered another call since the probe started, so the probe is a call like any other. */
  #endOutdatedProbe(pass: Pass): void {
    const { probe, cleared } = pass;
    if (probe !== "shared") return;
    const isOutdated = cleared ? this.#lastReplyMs >= cleared.atMs : this.#shared.isClosed;
    if (isOutdated) pass.probe = "none";
  }

  #countUnconnected({ accountId, probe, isRetry }: Pass): void {
    if (probe === "own") this.#failing.get(accountId)?.circuit.open();
    if (probe !== "none" || isRetry || !this.#shared.isClosed) return;
    if (++this.#run.unconnected >= this.#options.maxFailures) this.#openShared();
  }

  #countAccount({ accountId, probe, isRetry }: Pass): void {
    const { maxFailures, proofMs } = this.#options;
    const account = this.#accountOf(accountId);
    if (probe !== "own" && !isRetry) account.failures++;
    const { circuit, failures } = account;
    const opens = failures >= maxFailures || !this.#shared.isClosed;
    if (probe === "own" || (circuit.isClosed && opens)) circuit.open();
    // The probe of an account that keeps failing says nothing about the others.
    if (probe !== "none" || isRetry || !this.#shared.isClosed) return;
    this.#run.accounts.add(accountId);
    const isProved = this.#tools.now() - this.#lastReplyMs < proofMs;
    if (this.#run.accounts.size >= maxFailures && !isProved) this.#openShared();
  }

  /** The reply broke off: what its beginning cleared counts again; for all accounts unless there was a reply since. */
  #restore({ accountId, cleared }: Pass): void {
    if (!cleared) return;
    if (cleared.account) {
      const account = this.#accountOf(accountId, cleared.account);
      account.failures = Math.max(account.failures, cleared.account.failures);
    }
    if (this.#lastReplyMs >= cleared.atMs) return;
    for (const account of cleared.run.accounts) this.#run.accounts.add(account);
    this.#run.unconnected = Math.max(this.#run.unconnected, cleared.run.unconnected);
  }

  #openShared(): void {
    this.#shared.open();
    for (const { circuit } of this.#failing.values()) if (circuit.isClosed) circuit.open();
  }

  /** Accounts that only failed while the upstream was down may ask again; those that opened their own circuit wait. */
  #closeShared(): void {
    if (this.#shared.isClosed) return;
    this.#shared.close();
    for (const { circuit, failures } of this.#failing.values()) {
      if (failures < this.#options.maxFailures) circuit.reset();
    }
  }

  #accountOf(accountId: string, former?: FailingAccount): FailingAccount {
    const known = this.#failing.get(accountId);
    if (known) return known;
    const account = former ?? { failures: 0, circuit: new Circuit(this.#options, this.#tools) };
    this.#failing.set(accountId, account);
    if (this.#failing.size > MAX_ACCOUNTS) {
      for (const oldest of this.#failing.keys()) {
        this.#failing.delete(oldest);
        break;
      }
    }
    return account;
  }
}

function newRun(): Run {
  return { accounts: new Set(), unconnected: 0 };
}
