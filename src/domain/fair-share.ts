/** The share of the unused capacity that one user can use; the rest stays free for new users. */
const MAX_SHARE = 7 / 8;

/**
 * A limit shared by several users, such as accounts. A single user may use up to `maxShare` of the part that
 * other users do not use.
 */
export class FairShare {
  readonly #byUser = new Map<string, number>();
  readonly #maxShare: number;
  #inUse = 0;

  constructor(maxShare = MAX_SHARE) {
    this.#maxShare = maxShare;
  }

  get inUse(): number {
    return this.#inUse;
  }

  /** Acquires an amount if the total stays within `max`. Without a user, only the total is limited. */
  acquire(user: string | undefined, amount: number, max: number): boolean {
    if (this.#inUse + amount > max) return false;
    if (user !== undefined) {
      const own = this.#byUser.get(user) ?? 0;
      const others = this.#inUse - own;
      if (own + amount > (max - others) * this.#maxShare) return false;
      this.#byUser.set(user, own + amount);
    }
    this.#inUse += amount;
    return true;
  }

  release(user: string | undefined, amount: number): void {
    this.#inUse -= amount;
    if (user === undefined) return;
    const own = (this.#byUser.get(user) ?? 0) - amount;
    if (own > 0) this.#byUser.set(user, own);
    else this.#byUser.delete(user);
  }
}
