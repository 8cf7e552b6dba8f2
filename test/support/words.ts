/** The words of a text of several lines: a long list of names. */
export function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
