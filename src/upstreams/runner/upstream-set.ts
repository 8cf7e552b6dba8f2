import type { UpstreamSettings } from "../../domain/model.ts";
import type { CircuitState } from "./circuit.ts";
import type { GuardedUpstream } from "./guarded-upstream.ts";

type UpstreamStatus = {
  readonly name: string;
  readonly running: number;
  readonly waiting: number;
  /** State of the shared circuit. */
  readonly breaker: CircuitState;
  readonly openAccounts: number;
};

/** The upstreams of the catalog, and those that running calls still use. */
export class UpstreamSet {
  readonly #open: (settings: UpstreamSettings) => GuardedUpstream;
  readonly #byIdentity = new Map<string, GuardedUpstream>();
  #catalog: ReadonlySet<GuardedUpstream> = new Set();

  constructor(open: (settings: UpstreamSettings) => GuardedUpstream) {
    this.#open = open;
  }

  /**
   * Opens the upstreams of a catalog. If one cannot be opened, this throws and the current catalog stays in
   * use. Upstreams that are no longer in it close after their last call.
   */
  async replaceCatalog(settings: readonly UpstreamSettings[]): Promise<void> {
    this.#catalog = new Set(settings.map((one) => this.#find(one)));
    await this.#closeUnused([...this.#byIdentity.values()]);
  }

  /** The upstreams for a call, in the same order. They stay open until they are released. */
  acquire(settings: readonly UpstreamSettings[]): readonly GuardedUpstream[] {
    const upstreams = settings.map((one) => this.#find(one));
    for (const guarded of upstreams) guarded.users++;
    return upstreams;
  }

  async release(upstreams: readonly GuardedUpstream[]): Promise<void> {
    for (const guarded of upstreams) guarded.users--;
    await this.#closeUnused(upstreams);
  }

  status(): UpstreamStatus[] {
    return [...this.#byIdentity.values()].map(({ upstream, slots, breaker }) => ({
      name: upstream.name,
      running: slots.running,
      waiting: slots.waiting,
      breaker: breaker.state,
      openAccounts: breaker.openAccounts,
    }));
  }

  #find(settings: UpstreamSettings): GuardedUpstream {
    const identity = identityOf(settings);
    const known = this.#byIdentity.get(identity);
    if (known) return known;
    const guarded = this.#open(settings);
    this.#byIdentity.set(identity, guarded);
    return guarded;
  }

  async #closeUnused(upstreams: readonly GuardedUpstream[]): Promise<void> {
    const unused = upstreams.filter((guarded) => !this.#catalog.has(guarded) && guarded.users === 0);
    if (unused.length === 0) return;
    for (const [identity, guarded] of this.#byIdentity) {
      if (unused.includes(guarded)) this.#byIdentity.delete(identity);
    }
    await Promise.all(unused.map(({ upstream }) => upstream.close()));
  }
}

/** Models with the same settings share an upstream. */
function identityOf(settings: UpstreamSettings): string {
  if (settings.kind === "sandbox") return `sandbox ${settings.delayMs}`;
  const { kind, baseUrl, apiKeyEnv = "", model, timeoutMs } = settings;
  return `${kind} ${baseUrl} ${apiKeyEnv} ${timeoutMs} ${model}`;
}
