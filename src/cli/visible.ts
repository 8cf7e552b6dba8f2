/** What can steer a terminal or turn the order of a line around. */
export const UNSAFE: RegExp = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** A text from elsewhere as it may be shown to a person. */
export function visible(text: string): string {
  return text.replace(UNSAFE, "\u{fffd}");
}
