import type { Message } from "@bufbuild/protobuf";
import { redactKeys } from "../domain/credentials.ts";

const MAX_CHARACTERS = 1_000;
const MAX_NAME_CHARACTERS = 200;
const SEPARATOR = ", ";
/** The last name of a list that is not complete. */
const MORE = "...";

/** The members of a request that have no effect, by their names and paths, for the header `x-vx-ignored`. */
export class IgnoredMembers {
  readonly #names = new Set<string>();
  #characters = 0;
  #isCut = false;

  add(path: string): void {
    if (this.#isCut) return;
    const name = printable(path);
    const characters = this.#characters + name.length + SEPARATOR.length;
    this.#isCut = characters + MORE.length > MAX_CHARACTERS;
    if (this.#isCut || this.#names.has(name)) return;
    this.#names.add(name);
    this.#characters = characters;
  }

  /** Adds an object instead of members of it. */
  addWhole(path: string): void {
    for (const name of this.#names) if (name.startsWith(`${path}.`)) this.#names.delete(name);
    this.add(path);
  }

  /** At most 1,000 characters; empty if there are none. */
  get text(): string {
    return [...this.#names, ...(this.#isCut ? [MORE] : [])].join(SEPARATOR);
  }
}

/** A name is input of the caller: characters that a header or the list cannot contain are percent-encoded. */
function printable(path: string): string {
  return redactKeys(path)
    .slice(0, MAX_NAME_CHARACTERS)
    .toWellFormed()
    .replace(/[^!-~]|[,%]/gu, encodeURIComponent);
}

/** The unknown members of messages that were read from a body. */
const ignored = new WeakMap<Message, IgnoredMembers>();

export function keepIgnored(message: Message, members: IgnoredMembers): void {
  ignored.set(message, members);
}

export function ignoredIn(message: Message): IgnoredMembers | undefined {
  return ignored.get(message);
}
