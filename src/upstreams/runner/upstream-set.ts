import type { UpstreamSettings } from "../../domain/model.ts";
import type { CircuitState } from "./breaker.ts";
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
   * Opens the upstreams of a catalog, and reads the keys of those that are open again. If one cannot be opened or its key
   * cannot be read, this throws, and the current catalog and keys stay in use. Upstreams that are no longer in it close after their last call.
   */
  async replaceCatalog(settings: readonly UpstreamSettings[]): Promise<void> {
    const catalog = new Set(settings.map((one) => this.#find(one)));
    const renewals = [...catalog].map(({ upstream }) => upstream.prepareKey?.());
    for (const renew of renewals) renew?.();
    this.#catalog = catalog;
    await this.#closeUnused([...this.#byIdentity.values()]);
  }

  /** The upstreams for a call, in the same order. They stay open until they are released. */
  acquire(settings: readonly UpstreamSettings[]): readonly GuardedUpstream[] {
    const upstreams = settings.map((one) => this.#find(one));
    for (const guarded of upstreams) guarded.users++;
    return upstreams;
  }

  /** Returns a promise if an upstream closes. */
  release(upstreams: readonly GuardedUpstream[]): Promise<void> | undefined {
    for (const guarded of upstreams) guarded.users--;
    return this.#closeUnused(upstreams);
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

  #closeUnused(upstreams: readonly GuardedUpstream[]): Promise<void> | undefined {
    if (upstreams.every((guarded) => this.#isUsed(guarded))) return undefined;
    return this.#close(upstreams.filter((guarded) => !this.#isUsed(guarded)));
  }

  #isUsed(guarded: GuardedUpstream): boolean {
    return this.#catalog.has(guarded) || guarded.users > 0;
  }

  async #close(unused: readonly GuardedUpstream[]): Promise<void> {
    for (const [identity, guarded] of this.#byIdentity) {
      if (unused.includes(guarded)) this.#byIdentity.delete(identity);
    }
    await Promise.all(unused.map(({ upstream }) => upstream.close()));
  }
}

const identities = new WeakMap<UpstreamSettings, string>();

/** Models with the same settings share an upstream. */
function identityOf(settings: UpstreamSettings): string {
  let identity = identities.get(settings);
  if (identity === undefined) {
    identity = joinIdentity(settings);
    identities.set(settings, identity);
  }
  return identity;
}

function joinIdentity(settings: UpstreamSettings): string {
  if (settings.kind === "sandbox") return `sandbox ${settings.delayMs}`;
  const { kind, baseUrl, apiKeyEnv, apiKeyFile, model, timeoutMs } = settings;
  return JSON.stringify([kind, baseUrl, apiKeyEnv, apiKeyFile, timeoutMs, model]);
}
