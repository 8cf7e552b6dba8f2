import { unitsOf } from "../domain/characters.ts";
import { codePointEnd } from "./split-texts.ts";

const PARTS = 4;

/**
 * Texts with at most `maxUnits` in all: each a random part of one of four equal sections, so that no caller can choose what
 * is taken. All texts if they are short.
 */
export function sampleOf(texts: readonly string[], maxUnits: number, random: () => number): string[] {
  const units = unitsOf(texts);
  if (units <= maxUnits) return texts.filter((text) => text !== "");
  const sample: string[] = [];
  for (let part = 0; part < PARTS; part++) {
    const at = Math.floor(((part + random()) * units) / PARTS);
    sample.push(partAt(texts, at, Math.floor(maxUnits / PARTS)));
  }
  return sample;
}

/** At least one character of the text at the position, and at most `length` units. */
function partAt(texts: readonly string[], position: number, length: number): string {
  let before = 0;
  for (const text of texts) {
    const at = position - before;
    if (at < text.length) {
      // A position inside a surrogate pair moves to its start.
      const start = codePointEnd(text, at);
      return text.slice(start, codePointEnd(text, start + length));
    }
    before += text.length;
  }
  return "";
}
