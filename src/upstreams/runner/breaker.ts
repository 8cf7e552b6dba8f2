import type { UpstreamFailure } from "../upstream-failure.ts";

export type BreakerOptions = CircuitOptions & {
  /**
   * Consecutive failed calls of one account open the circuit of that account; consecutive accounts with a
   * failed call, or calls without a connection, open the shared circuit.
   */
  readonly maxFailures: number;
  /** After a complete reply, failures of accounts do not open the shared circuit for this long. */
  readonly healthyMs: number;
};

/** Above this limit the oldest failing account is removed. */
const MAX_ACCOUNTS = 4_096;

/** An account whose last call failed. */
type FailingAccount = { failures: number; readonly circuit: Circuit };

/** Failures since the last reply. */
type Run = { readonly accounts: Set<string>; unconnected: number };

/** Permission for one attempt of a call. It ends with succeed, fail or cancel. */
export type Pass = {
  readonly accountId: string;
  /** The circuit that this attempt probes: its result opens or closes that circuit. */
  probe: "none" | "own" | "shared";
  /** A retry within the same call: another failure is not counted again. */
  readonly isRetry: boolean;
  /** The failures that the first piece of the reply cleared; they are restored if the reply fails. */
  cleared: { readonly run: Run; readonly account: FailingAccount | undefined; readonly atMs: number } | undefined;
};

/**
 * Blocks calls to an upstream that is down. It has two kinds of circuit. A failure after the request was sent
 * may be caused by the prompt, so it opens only the circuit of its own account. The shared circuit opens when
 * several accounts in a row fail, or when no connection can be made, which no prompt can cause. While the
 * shared circuit is open, the circuits of all accounts whose last call failed are open too.
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

  get state(): CircuitState {
    return this.#shared.state;
  }

  /** Number of accounts whose own circuit is open. */
  get openAccounts(): number {
    let count = 0;
    for (const { circuit } of this.#failing.values()) if (!circuit.isClosed) count++;
    return count;
  }

  /** Returns undefined when the call must not use the upstream now. */
  admit(accountId: string, isRetry: boolean): Pass | undefined {
    const pass = (probe: Pass["probe"]): Pass => ({ accountId, probe, isRetry, cleared: undefined });
    // An account whose last call failed probes its own circuit, never the shared one.
    const own = this.#failing.get(accountId)?.circuit;
    const circuit = own ?? this.#shared;
    if (circuit.isClosed) return pass("none");
    return circuit.tryProbe() ? pass(own ? "own" : "shared") : undefined;
  }

  /** Called when the reply has begun: the upstream responds, so the circuits close. */
  begin(pass: Pass): void {
    this.#endOutdatedProbe(pass);
    const account = this.#failing.get(pass.accountId);
    pass.cleared = { run: this.#run, account, atMs: this.#tools.now() };
    this.#run = newRun();
    account?.circuit.close();
    this.#failing.delete(pass.accountId);
    this.#closeShared();
  }

  /** Called after a complete reply or a refusal of the request. */
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

  /** Called when the caller disconnects. Before the reply began, a probe ends without a result. */
  cancel(pass: Pass): void {
    if (pass.cleared) return;
    if (pass.probe === "shared") this.#shared.cancelProbe();
    if (pass.probe === "own") this.#failing.get(pass.accountId)?.circuit.cancelProbe();
  }

  /**
   * If the upstream has replied to another call since the probe started, the probe counts as a normal call.
   */
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
    const { maxFailures, healthyMs } = this.#options;
    const account = this.#accountOf(accountId);
    if (probe !== "own" && !isRetry) account.failures++;
    const { circuit, failures } = account;
    const opens = failures >= maxFailures || !this.#shared.isClosed;
    if (probe === "own" || (circuit.isClosed && opens)) circuit.open();
    // A failed probe of an account's own circuit gives no information about other accounts.
    if (probe !== "none" || isRetry || !this.#shared.isClosed) return;
    this.#run.accounts.add(accountId);
    const isHealthy = this.#tools.now() - this.#lastReplyMs < healthyMs;
    if (this.#run.accounts.size >= maxFailures && !isHealthy) this.#openShared();
  }

  /**
   * Restores the failures that the first piece of a failed reply cleared. The shared counts are restored only
   * if no other call had a reply since.
   */
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

  /** Closes the circuits of accounts below the failure limit; accounts at the limit stay blocked. */
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

export type CircuitState = "closed" | "half_open" | "open";

type CircuitOptions = {
  /** The first open period. Each failed probe doubles it, up to the maximum. */
  readonly openMs: number;
  /** The longest open period, and the time after which a probe without a result expires. */
  readonly maxOpenMs: number;
};

export type CircuitTools = {
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** In the range [0, 1). */
  readonly random: () => number;
};

/** A circuit breaker. When open, it allows one probe at a time, after a wait that grows. */
export class Circuit {
  readonly #options: CircuitOptions;
  readonly #tools: CircuitTools;
  /** Openings since the last reset. */
  #openings = 0;
  #openUntilMs: number | undefined;
  /** Undefined when no probe runs. */
  #probingUntilMs: number | undefined;

  constructor(options: CircuitOptions, tools: CircuitTools) {
    this.#options = options;
    this.#tools = tools;
  }

  get isClosed(): boolean {
    return this.#openUntilMs === undefined;
  }

  get state(): CircuitState {
    if (this.#openUntilMs === undefined) return "closed";
    return this.#tools.now() >= this.#openUntilMs ? "half_open" : "open";
  }

  /** True if the call may probe now. The right to probe expires, so a slow call does not block the others. */
  tryProbe(): boolean {
    const now = this.#tools.now();
    if (this.#openUntilMs === undefined || now < this.#openUntilMs) return false;
    if (this.#probingUntilMs !== undefined && now < this.#probingUntilMs) return false;
    this.#probingUntilMs = now + this.#options.maxOpenMs;
    return true;
  }

  /** Ends the probe without a result, so another call may probe. */
  cancelProbe(): void {
    this.#probingUntilMs = undefined;
  }

  open(): void {
    const { openMs, maxOpenMs } = this.#options;
    const waitMs = Math.min(openMs * 2 ** this.#openings++, maxOpenMs);
    // Random, so that several servers do not probe at the same moment.
    this.#openUntilMs = this.#tools.now() + waitMs * (0.5 + this.#tools.random());
    this.#probingUntilMs = undefined;
  }

  /**
   * Closes the circuit when the reply to a probe begins. If that reply fails, the next open period is
   * longer.
   */
  close(): void {
    this.#openUntilMs = undefined;
    this.#probingUntilMs = undefined;
  }

  /** Called after a complete reply: the next open period is short again. */
  reset(): void {
    this.close();
    this.#openings = 0;
  }
}
