/** A line of CSV (RFC 4180). */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/**
 * Where spreadsheets may start to evaluate a text, and callers choose some of the texts: before these characters, some of
 * them also in their full-width forms, at the start of a cell. Spaces before them do not prevent it. In many languages,
 * spreadsheets open a file with semicolons between the cells: then a cell also starts after a semicolon or a line break
 * inside of quotes. Amounts such as "-$0.50" stay as they are.
 */
const FORMULA =
  /^(?=[\t\r\n]|\s*(?:[=@\uff1d\uff20\uff0b\uff0d]|[+-](?!\$?[\d.]+$)))|(?=[=@+\-\uff1d\uff20\uff0b\uff0d])(?<=[;\t\r\n]\s*)/g;

function csvCell(text: string): string {
  const safe = text.replace(FORMULA, "'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
