/** Items that wait, in a queue for each user. The users take turns: many items of one delay those of another as one does. */
export class Rotation<Item> {
  /** In the order of their next turns. */
  readonly #queues = new Map<string | undefined, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(user: string | undefined, item: Item): void {
    this.#size++;
    const queue = this.#queues.get(user);
    if (queue) queue.push(item);
    else this.#queues.set(user, [item]);
  }

  take(): Item | undefined {
    for (const [user, queue] of this.#queues) {
      this.#size--;
      this.#queues.delete(user);
      const item = queue.shift();
      if (queue.length > 0) this.#queues.set(user, queue);
      return item;
    }
    return undefined;
  }
}
