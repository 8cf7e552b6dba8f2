/** Months are numbers: since January 1970. */
export function monthText(month: number): string {
  return `${1970 + Math.floor(month / 12)}-${String((month % 12) + 1).padStart(2, "0")}`;
}

/** Undefined if the text is not a month such as 2030-01. */
export function parseMonth(text: string): number | undefined {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  if (year === undefined || Number(year) < 1970) return undefined;
  return (Number(year) - 1970) * 12 + Number(month) - 1;
}
