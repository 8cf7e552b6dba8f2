/** What a search for keys matches; empty texts match nothing, and all of them empty match every key. */
export type KeyQuery = {
  readonly id: string;
  /** The visible characters of the secret: the first four, and the last four or nothing. */
  readonly start: string;
  readonly end: string;
  /** A part of the name. */
  readonly name: string;
};

const NOTHING: KeyQuery = { id: "", start: "", end: "", name: "" };

/** An id, a masked key, the first characters of a key, or a part of a name. Undefined if a key has too few characters. */
export function keyQueryOf(text: string): KeyQuery | undefined {
  if (/^key_[0-9a-z]{26}$/.test(text)) return { ...NOTHING, id: text };
  const masked = /^(?:vx_live_)?(\w{4})(?:…|\.\.\.)(\w{4})$/.exec(text);
  if (masked) return { ...NOTHING, start: masked[1] ?? "", end: masked[2] ?? "" };
  const first = /^vx_live_([0-9A-Za-z]{4})/.exec(text)?.[1];
  if (first !== undefined) return { ...NOTHING, start: first };
  if (text.startsWith("vx_live_")) return undefined;
  return { ...NOTHING, start: /^[0-9A-Za-z]{4}$/.test(text) ? text : "", name: text };
}

/** A full key in the masked form: the server refuses texts with a full key. */
export function maskedIfFull(text: string): string {
  return text.trim().replace(/^(vx_live_\w{4})\w{4,}(\w{4})$/, "$1…$2");
}
