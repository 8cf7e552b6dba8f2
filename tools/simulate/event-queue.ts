type Event = { readonly at: number; readonly run: () => void };

/** Runs events in the order of their times. A binary heap. */
export class EventQueue {
  now = 0;
  readonly #heap: Event[] = [];

  at(time: number, run: () => void): void {
    const heap = this.#heap;
    let i = heap.length;
    heap.push({ at: time, run });
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (this.#timeOf(parent) <= time) break;
      this.#swap(i, parent);
      i = parent;
    }
  }

  after(ms: number, run: () => void): void {
    this.at(this.now + ms, run);
  }

  runUntil(end: number): void {
    for (let next = this.#take(); next && next.at <= end; next = this.#take()) {
      this.now = next.at;
      next.run();
    }
  }

  #take(): Event | undefined {
    const heap = this.#heap;
    this.#swap(0, heap.length - 1);
    const first = heap.pop();
    for (let i = 0; ; ) {
      const left = 2 * i + 1;
      const right = left + 1;
      const least = this.#timeOf(right) < this.#timeOf(left) ? right : left;
      if (this.#timeOf(least) >= this.#timeOf(i)) return first;
      this.#swap(i, least);
      i = least;
    }
  }

  #timeOf(index: number): number {
    return this.#heap[index]?.at ?? Number.POSITIVE_INFINITY;
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap;
    if (a === b || heap.length === 0) return;
    [heap[a], heap[b]] = [heap[b] as Event, heap[a] as Event];
  }
}
