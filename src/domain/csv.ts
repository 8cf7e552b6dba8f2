/** A line of CSV (RFC 4180). */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/**
 * Spreadsheets evaluate cells that begin with these characters, some of them also with the full-width forms, and callers
 * choose some of the texts. Amounts such as "-$0.50" stay as they are.
 */
const FORMULA = /^[=@\t\r\uff1d\uff20\uff0b\uff0d]|^[+-](?!\$?[\d.]+$)/;

function csvCell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
