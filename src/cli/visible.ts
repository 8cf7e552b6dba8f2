/** Characters that control a terminal or reverse the direction of text. */
export const UNSAFE: RegExp = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Makes text from outside safe to print on a terminal. */
export function visible(text: string): string {
  return text.replace(UNSAFE, "\u{fffd}");
}
