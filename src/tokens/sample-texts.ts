import { unitsOf } from "../domain/characters.ts";
import { codePointEnd } from "./split-texts.ts";

const PARTS = 4;

/**
 * A sample with at most `maxUnits`: from each of four equal sections of the joined texts, what follows a random place. The end
 * of the texts is followed by their beginning, so each character is as likely to be taken as any other, and a caller cannot
 * choose what is taken. Returns all texts if they are short.
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
