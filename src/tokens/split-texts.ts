import { codePointEnd } from "../domain/text.ts";

/** How far before the end of a part a word may end; longer words are split. */
const MAX_TAIL_CHARACTERS = 256;

/** No token of cl100k_base continues from a letter to a space or a punctuation mark. */
const LAST_WORD_END = /^.*\p{L}(?=[\s\p{P}])/su;

/** Groups texts so that each group has at most `maxCharacters`; longer texts are split, at the end of a word if possible. */
export function* splitTexts(texts: readonly string[], maxCharacters: number): Generator<string[]> {
  let group: string[] = [];
  let characters = 0;
  for (const text of texts) {
    for (let start = 0; start < text.length; ) {
      const end = partEnd(text, start, maxCharacters);
      if (characters + end - start > maxCharacters) {
        yield group;
        group = [];
        characters = 0;
      }
      group.push(text.slice(start, end));
      characters += end - start;
      start = end;
    }
  }
  if (group.length > 0) yield group;
}

function partEnd(text: string, start: number, maxCharacters: number): number {
  const end = codePointEnd(text, start + maxCharacters);
  if (end === text.length) return end;
  const tail = end - MAX_TAIL_CHARACTERS;
  const [words] = LAST_WORD_END.exec(text.slice(tail, end + 1)) ?? [];
  return words === undefined ? end : tail + words.length;
}
