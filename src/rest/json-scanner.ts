import { invalid, type RestProblem } from "./problem.ts";

/** Deeper than any message of an honest caller, and far from what the stack can take. */
const MAX_DEPTH = 64;

/** More names and values than any message here can have; a body of 32 MiB could hold sixteen million. */
const MAX_VALUES = 100_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WHITESPACE = /[ \t\n\r]*/y;

/**
 * Reads JSON piece by piece, as the reader of a message asks for it. Unlike JSON.parse it keeps the digits of
 * numbers, sees duplicate names and is strict about surrogates; strings, the bulk of a body, are left to the engine.
 */
export class JsonScanner {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The kind of the next value, by its first character. */
  peek(): "object" | "array" | "string" | "number" | "true" | "false" | "null" {
    this.#skipSpace();
    switch (this.#text[this.#at]) {
      case "{":
        return "object";
      case "[":
        return "array";
      case '"':
        return "string";
      case "t":
        return "true";
      case "f":
        return "false";
      case "n":
        return "null";
      default:
        return "number";
    }
  }

  /** Calls back for each member, with the scanner standing before its value. */
  object(member: (name: string) => void): void {
    this.#open("{");
    const seen = new Set<string>();
    if (!this.#take("}")) {
      do {
        this.#skipSpace();
        const name = this.string();
        if (seen.has(name))
          throw this.#fail(`the name ${JSON.stringify(name.slice(0, 100))} stands twice in one object`);
        seen.add(name);
        this.#expect(":");
        this.#count();
        member(name);
      } while (this.#take(","));
      this.#expect("}");
    }
    this.#depth--;
  }

  /** Calls back for each item, with the scanner standing before it. */
  array(item: (index: number) => void): void {
    this.#open("[");
    if (!this.#take("]")) {
      let index = 0;
      do {
        this.#count();
        item(index++);
      } while (this.#take(","));
      this.#expect("]");
    }
    this.#depth--;
  }

  /** Undefined if it has more characters than the limit, which is found out before it is decoded. */
  shortString(maxCharacters: number): string | undefined {
    const quoted = this.#quoted();
    // A character is at most two escapes of six.
    if (quoted.length > maxCharacters * 12 + 2) return undefined;
    const value = this.#decoded(quoted);
    return value.length > maxCharacters * 2 ? undefined : value;
  }

  string(): string {
    return this.#decoded(this.#quoted());
  }

  #decoded(quoted: string): string {
    const value = this.#decode(quoted);
    if (!value.isWellFormed()) throw this.#fail("a string has half of a surrogate pair");
    return value;
  }

  /** The digits as they are written. */
  number(): string {
    this.#skipSpace();
    NUMBER.lastIndex = this.#at;
    const match = NUMBER.exec(this.#text);
    if (!match) throw this.#fail("a value is missing");
    this.#at += match[0].length;
    return match[0];
  }

  literal(word: "true" | "false" | "null"): void {
    this.#skipSpace();
    if (!this.#text.startsWith(word, this.#at)) throw this.#fail("a value is missing");
    this.#at += word.length;
  }

  /** Steps over a value as strictly as if it were read, and returns it as it is written. */
  raw(): string {
    this.#skipSpace();
    const start = this.#at;
    this.skip();
    return this.#text.slice(start, this.#at);
  }

  skip(): void {
    this.#skip(() => this.string());
  }

  /** Steps over a value that will be read once more: does not look into its strings. */
  glance(): void {
    this.#skip(() => this.#quoted());
  }

  #skip(string: () => void): void {
    const kind = this.peek();
    if (kind === "object") this.object(() => this.#skip(string));
    else if (kind === "array") this.array(() => this.#skip(string));
    else if (kind === "string") string();
    else if (kind === "number") this.#finite();
    else this.literal(kind);
  }

  #finite(): void {
    if (!Number.isFinite(Number(this.number()))) throw this.#fail("a number is too large");
  }

  end(): void {
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#fail("something stands after the end");
  }

  /** A string as it is written, quotes included. */
  #quoted(): string {
    this.#skipSpace();
    const start = this.#at;
    if (this.#text[start] !== '"') throw this.#fail("a string is missing");
    let end = this.#text.indexOf('"', start + 1);
    // Nearly always that is it; where it is not, there may be many more, so each character is looked at once.
    if (this.#text[end - 1] === "\\") end = this.#endFrom(start + 1);
    if (end < 0) throw this.#fail("a string has no end");
    this.#at = end + 1;
    return this.#text.slice(start, end + 1);
  }

  /** Where the string that begins there ends; below 0 if it does not. */
  #endFrom(at: number): number {
    const text = this.#text;
    for (let i = at; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === QUOTE) return i;
      if (code === BACKSLASH) i++;
    }
    return -1;
  }

  #decode(quoted: string): string {
    try {
      return JSON.parse(quoted) as string;
    } catch {
      throw this.#fail("a string has a control character or a wrong escape");
    }
  }

  #open(bracket: string): void {
    this.#expect(bracket);
    if (++this.#depth > MAX_DEPTH)
      throw this.#fail(`more than ${MAX_DEPTH} objects and lists stand in each other`);
  }

  #count(): void {
    if (++this.#values > MAX_VALUES) throw this.#fail(`it has more than ${MAX_VALUES} values`);
  }

  #expect(character: string): void {
    if (!this.#take(character)) throw this.#fail(`"${character}" is missing`);
  }

  #take(character: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #skipSpace(): void {
    const code = this.#text.charCodeAt(this.#at);
    if (code > 32) return;
    WHITESPACE.lastIndex = this.#at;
    this.#at += WHITESPACE.exec(this.#text)?.[0].length ?? 0;
  }

  #fail(what: string): RestProblem {
    return invalid("", `the body is not valid JSON: ${what}, at character ${this.#at}`);
  }
}
