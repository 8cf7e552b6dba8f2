/** Arrays in PostgreSQL's text form, which is how a batch travels. */

export function numberArray(values: readonly (number | bigint | undefined)[]): string {
  return `{${values.map((value) => value ?? "NULL").join(",")}}`;
}

export function textArray(values: readonly (string | undefined)[]): string {
  return `{${values.map((value) => (value === undefined ? "NULL" : quote(value))).join(",")}}`;
}

function quote(value: string): string {
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}
