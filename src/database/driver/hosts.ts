import { setTimeout as wait } from "node:timers/promises";
import { type History, ReadOnlyError, Session, type SessionOptions } from "./connection.ts";
import { type DatabaseAddress, type Endpoint, endpointsOf } from "./endpoints.ts";

/** A host that does not respond delays the attempt on the next one by this time. */
const STAGGER_MS = 300;
/** At first, every host gets this time to respond after the first one that can write. */
const FIRST_SEARCH_MS = 1_000;

/** The server accepts writes although another one was promoted in its place. */
class OldPrimaryError extends Error {
  constructor(server: string) {
    super(`${server} is an old primary: another server of this database has been promoted`);
  }
}

/**
 * The servers of an address. All pools of a process share it: the first connection that finds a new primary leads the others to
 * it, and those to the old one are closed.
 */
export class Hosts {
  readonly endpoints: readonly Endpoint[];
  /** The primary that was used last. Its history is unknown at first, and if there is a single host. */
  #preferred = 0;
  #history: History | undefined;
  /** Open sessions whose history is known. */
  readonly #sessions = new Set<Session>();

  constructor(address: DatabaseAddress) {
    this.endpoints = endpointsOf(address);
  }

  /** Opens a session on the primary: the server that can write and has the highest timeline. */
  async open(options: SessionOptions): Promise<Session> {
    const [only, ...others] = this.endpoints;
    if (only && others.length === 0) return await Session.open(only, options);
    const session = await this.#search({ ...options, readsHistory: true });
    this.#track(session);
    return session;
  }

  /** The servers that are not in use. */
  get others(): readonly Endpoint[] {
    return this.endpoints.filter((_, i) => i !== this.#preferred);
  }

  /** Moves to this server if it was promoted after the one in use. */
  useNewer(endpoint: Endpoint, history: History): void {
    const known = this.#history;
    if (known && known.system === history.system && known.timeline < history.timeline) {
      this.#use(endpoint, history);
    }
  }

  /** Closes the connections to an older primary, also during a statement, because what it still writes is lost. */
  #use(endpoint: Endpoint, history: History): void {
    this.#preferred = this.endpoints.indexOf(endpoint);
    this.#history = history;
    for (const session of this.#sessions) {
      if (this.#isOlder(session.history)) session.destroy();
      if (!session.isOpen) this.#sessions.delete(session);
    }
  }

  /** Whether the history ends before that of the primary in use. */
  #isOlder(history: History | undefined): boolean {
    const known = this.#history;
    return history?.system === known?.system && timelineOf(history) < timelineOf(known);
  }

  #track(session: Session): void {
    const { endpoint, history } = session;
    if (this.#isOlder(history)) {
      session.destroy();
      throw new OldPrimaryError(endpoint.name);
    }
    this.#sessions.add(session);
    if (history) this.#use(endpoint, history);
  }

  /** Starts with the server that was used last. Each further attempt starts when the one before fails or takes long. */
  async #search(options: SessionOptions): Promise<Session> {
    const isFirst = this.#history === undefined;
    const opened: Session[] = [];
    let isOver = false;
    const attempt = async (endpoint: Endpoint) => {
      if (isOver) throw new Error("another server was chosen");
      const session = await Session.open(endpoint, options);
      if (isOver || this.#isOlder(session.history)) {
        session.destroy();
        throw new OldPrimaryError(endpoint.name);
      }
      opened.push(session);
    };
    const attempts: Promise<void>[] = [];
    for (const endpoint of this.#inOrder()) {
      const previous = attempts.at(-1);
      const turn = isFirst || !previous ? Promise.resolve() : failureOrDelay(previous);
      attempts.push(turn.then(() => attempt(endpoint)));
    }
    try {
      await Promise.any(attempts);
      // A restarted process does not know which of two servers that can write was promoted.
      if (isFirst) await Promise.race([Promise.allSettled(attempts), wait(FIRST_SEARCH_MS)]);
    } catch (error) {
      throw combine((error as AggregateError).errors);
    } finally {
      isOver = true;
    }
    const [primary, ...rest] = opened.toSorted((a, b) => timelineOf(b.history) - timelineOf(a.history));
    for (const session of rest) session.destroy();
    return primary as Session;
  }

  #inOrder(): Endpoint[] {
    return [...this.endpoints.slice(this.#preferred), ...this.endpoints.slice(0, this.#preferred)];
  }
}

function timelineOf(history: History | undefined): number {
  return history?.timeline ?? 0;
}

async function failureOrDelay(attempt: Promise<void>): Promise<void> {
  const failed = new Promise<void>((resolve) => void attempt.catch(resolve));
  await Promise.race([failed, wait(STAGGER_MS)]);
}

/**
 * One error for all servers of an address. Its code is read-only if any server is read-only, because that
 * server responded.
 */
function combine(failures: readonly unknown[]): Error {
  const messages = failures.map((failure) => (failure as Error).message);
  const readOnly = failures.find((failure) => failure instanceof ReadOnlyError);
  const { code } = (readOnly ?? failures.at(-1)) as { code?: string };
  return Object.assign(new Error(messages.join("; ")), { code, failures });
}
