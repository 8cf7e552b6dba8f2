/** The share of the unused capacity that one user can take; the rest stays free for new users. */
const MAX_SHARE = 7 / 8;

/**
 * A limit shared by several users, such as accounts. A single user may take up to MAX_SHARE of it; the more
 * others take, the less is left for each.
 */
export class FairShare {
  readonly #byUser = new Map<string, number>();
  #taken = 0;

  get taken(): number {
    return this.#taken;
  }

  /** Takes an amount if the total stays within `max`. Without a user, only the total is limited. */
  take(user: string | undefined, amount: number, max: number): boolean {
    if (this.#taken + amount > max) return false;
    if (user !== undefined) {
      const own = this.#byUser.get(user) ?? 0;
      const others = this.#taken - own;
      if (own + amount > (max - others) * MAX_SHARE) return false;
      this.#byUser.set(user, own + amount);
    }
    this.#taken += amount;
    return true;
  }

  release(user: string | undefined, amount: number): void {
    this.#taken -= amount;
    if (user === undefined) return;
    const own = (this.#byUser.get(user) ?? 0) - amount;
    if (own > 0) this.#byUser.set(user, own);
    else this.#byUser.delete(user);
  }
}
