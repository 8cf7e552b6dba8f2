/** A JSON value whose numbers keep their original digits. */
export type ExactJson = null | boolean | string | Digits | ExactJson[] | { [name: string]: ExactJson };

export class Digits {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** JSON.parse without loss of digits: each number is read from its source text. */
export function parseExact(text: string): ExactJson {
  const keepDigits = (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" ? new Digits(context?.source ?? "") : value;
  return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown) as ExactJson;
}
