const MAX_PATTERN = 2_000;
const MAX_CHARACTERS = 10_000;
const MAX_STEPS = 20_000;
const MAX_GROUPS = 50;

/** Candidates for a character that a class excludes. */
const USUAL = [..."aA0 -_.b1"];
const CLASSES: { readonly [letter: string]: string } = {
  d: "0123456789",
  w: "abcdefghij0123456789",
  s: " ",
  D: "abcdefghij",
  W: "-",
  S: "abcdefghij",
};
const CONTROLS: { readonly [letter: string]: string } = {
  n: "\n",
  r: "\r",
  t: "\t",
  f: "\f",
  v: "\v",
  0: "\0",
};
const QUANTIFIER = /(?:[*+?]|\{(\d{1,6})(,?)(\d{0,6})\})\??/y;
const GROUP = /\((?:\?(?:[:=!]|<[=!]|<\w{1,64}>))?/y;
const ESCAPE = /\\(?:u\{([\da-fA-F]{1,6})\}|u([\da-fA-F]{4})|x([\da-fA-F]{2})|([pP])\{([^}]{1,64})\}|([\s\S]))/y;

type Options = {
  /** Selects other characters of classes. */
  readonly variant: number;
  /** The number of additional repetitions of the first part that may repeat without limit. */
  readonly repeats: number;
};

/**
 * A text that a regular expression matches, for the syntax that schemas use: the first alternative, the fewest
 * repetitions. Assertions and back references are ignored. The expression is never executed.
 */
export function textOfPattern(pattern: string, options: Options): string {
  if (pattern.length > MAX_PATTERN) return "text";
  return new PatternWriter(pattern, options).write();
}

class PatternWriter {
  readonly #pattern: string;
  readonly #variant: number;
  #repeats: number;
  #at = 0;
  #steps = 0;
  #groups = 0;
  #text = "";

  constructor(pattern: string, { variant, repeats }: Options) {
    this.#pattern = pattern;
    this.#variant = variant;
    this.#repeats = repeats;
  }

  write(): string {
    this.#alternatives();
    return this.#text;
  }

  /** Writes the first alternative and skips the others. */
  #alternatives(): void {
    this.#sequence();
    const { length } = this.#text;
    while (this.#pattern[this.#at] === "|") {
      this.#at++;
      this.#sequence();
      this.#text = this.#text.slice(0, length);
    }
  }

  #sequence(): void {
    for (;;) {
      const next = this.#pattern[this.#at];
      if (next === undefined || next === "|" || next === ")" || this.#steps++ > MAX_STEPS) return;
      this.#repeated();
    }
  }

  #repeated(): void {
    const start = this.#at;
    const { length } = this.#text;
    this.#atom();
    const once = this.#text.slice(length);
    const quantifier = this.#take(QUANTIFIER);
    if (!quantifier || this.#at === start) return;
    const times = this.#timesOf(quantifier);
    this.#text = this.#text.slice(0, length) + once.repeat(Math.min(times, MAX_CHARACTERS / Math.max(1, once.length)));
    this.#text = this.#text.slice(0, MAX_CHARACTERS);
  }

  #timesOf([text, min, comma, max]: RegExpExecArray): number {
    const fewest = min === undefined ? (text.startsWith("+") ? 1 : 0) : Number(min);
    const isOpen = min === undefined ? !text.startsWith("?") : comma === ",";
    if (!isOpen) return fewest;
    const most = max ? Number(max) : Number.POSITIVE_INFINITY;
    const times = Math.min(most, fewest + this.#repeats);
    this.#repeats -= times - fewest;
    return times;
  }

  #atom(): void {
    const group = this.#groups < MAX_GROUPS ? this.#take(GROUP) : undefined;
    if (group) {
      this.#groups++;
      const { length } = this.#text;
      this.#alternatives();
      this.#groups--;
      if (this.#pattern[this.#at] === ")") this.#at++;
      // Lookarounds add no text.
      if (/[=!]$/.test(group[0])) this.#text = this.#text.slice(0, length);
      return;
    }
    const character = this.#pattern[this.#at] ?? "";
    if (character === "[") this.#text += this.#pick(this.#class());
    else if (character === "\\") this.#text += this.#pick(this.#escape());
    else {
      this.#at += character.length;
      if (character === ".") this.#text += this.#pick(CLASSES.w ?? "");
      else if (character !== "^" && character !== "$") this.#text += character;
    }
  }

  /** The characters of a class such as [a-z], at most 64 of each range. */
  #class(): string {
    this.#at++;
    const isNegated = this.#pattern[this.#at] === "^";
    if (isNegated) this.#at++;
    let characters = "";
    let from = "";
    while (this.#at < this.#pattern.length && this.#pattern[this.#at] !== "]") {
      const isRange = this.#pattern[this.#at] === "-" && from !== "" && this.#pattern[this.#at + 1] !== "]";
      if (isRange) this.#at++;
      const next = this.#pattern[this.#at] === "\\" ? this.#escape() : (this.#pattern[this.#at++] ?? "");
      characters += isRange ? rangeOf(from, next, isNegated) : next;
      from = isRange ? "" : next;
    }
    this.#at++;
    if (!isNegated) return characters;
    return USUAL.filter((usual) => !characters.includes(usual)).join("");
  }

  /** The characters that an escape stands for; none for \b and back references. */
  #escape(): string {
    const [all = "\\", code, unit, byte, property, name = "", other = ""] = this.#take(ESCAPE) ?? [];
    if (all === "\\") this.#at++;
    const hex = code ?? unit ?? byte;
    if (hex !== undefined) return String.fromCodePoint(Math.min(Number.parseInt(hex, 16), 0x10_ffff));
    if (property) return property === "P" ? "-" : /^N/.test(name) ? "0123456789" : /^Lu/.test(name) ? "ABC" : "abc";
    if (/[bB1-9k]/.test(other)) return "";
    return CLASSES[other] ?? CONTROLS[other] ?? other;
  }

  #pick(characters: string): string {
    return characters === "" ? "" : (characters[this.#variant % characters.length] ?? "");
  }

  #take(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#pattern) ?? undefined;
    if (found) this.#at += found[0].length;
    return found;
  }
}

/** The first characters of a range; all that a class excludes. */
function rangeOf(from: string, to: string, isNegated: boolean): string {
  const start = from.charCodeAt(0);
  const end = Math.min(to.charCodeAt(0), start + (isNegated ? 256 : 64));
  let characters = "";
  for (let code = start; code <= end; code++) characters += String.fromCharCode(code);
  return characters;
}
