/** The share of the unused capacity that one account can use; the rest stays free for others. */
const MAX_SHARE = 7 / 8;

/**
 * A limit shared by accounts, or by remote addresses. A single one may use up to `maxShare` of the part that
 * the others do not use.
 */
export class FairShare {
  readonly #byAccount = new Map<string, number>();
  readonly #maxShare: number;
  #inUse = 0;

  constructor(maxShare = MAX_SHARE) {
    this.#maxShare = maxShare;
  }

  get inUse(): number {
    return this.#inUse;
  }

  /** Acquires an amount if the total stays within `max`. Without an account, only the total is limited. */
  acquire(accountId: string | undefined, amount: number, max: number): boolean {
    if (this.#inUse + amount > max) return false;
    if (accountId !== undefined) {
      const own = this.#byAccount.get(accountId) ?? 0;
      const others = this.#inUse - own;
      if (own + amount > (max - others) * this.#maxShare) return false;
      this.#byAccount.set(accountId, own + amount);
    }
    this.#inUse += amount;
    return true;
  }

  release(accountId: string | undefined, amount: number): void {
    this.#inUse -= amount;
    if (accountId === undefined) return;
    const own = (this.#byAccount.get(accountId) ?? 0) - amount;
    if (own > 0) this.#byAccount.set(accountId, own);
    else this.#byAccount.delete(accountId);
  }
}
