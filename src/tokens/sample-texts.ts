import { unitsOf } from "../domain/characters.ts";
import { codePointEnd } from "./split-texts.ts";

const PARTS = 4;

/**
 * A sample of at most `maxUnits` units: a part from a random place of each of four equal sections of the joined texts. A part
 * that reaches the end of the texts continues at their beginning, so every character is taken with the same probability, and a
 * caller cannot choose which ones are. Returns all texts if they have at most `maxUnits` units.
 */
export function sampleOf(texts: readonly string[], maxUnits: number, random: () => number): string[] {
  const filled = texts.filter((text) => text !== "");
  const units = unitsOf(filled);
  if (units <= maxUnits) return filled;
  const sample: string[] = [];
  for (let part = 0; part < PARTS; part++) {
    const position = Math.floor(((part + random()) * units) / PARTS);
    appendUnits(sample, filled, position, Math.floor(maxUnits / PARTS));
  }
  return sample;
}

/** Appends the units from the position on, each text as a part of its own. A surrogate pair at an end is left out. */
function appendUnits(sample: string[], texts: readonly string[], position: number, count: number): void {
  let index = 0;
  let start = position;
  for (; start >= (texts[index] ?? "").length; index++) start -= (texts[index] ?? "").length;
  for (let missing = count; missing > 0; index = (index + 1) % texts.length, start = 0) {
    const text = texts[index] ?? "";
    const from = Math.max(codePointEnd(text, start), 0);
    const end = codePointEnd(text, from + missing);
    if (end > from) sample.push(text.slice(from, end));
    missing -= text.length - start;
  }
}
