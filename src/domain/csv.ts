/** A line of CSV (RFC 4180). */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/**
 * The places where a spreadsheet may start to evaluate a text; callers choose some of the texts. They are at the start
 * of a cell, before one of these characters, also as full-width characters, even with spaces between. In many
 * languages, spreadsheets separate the cells of a file at semicolons, so a cell also starts after a semicolon or a line
 * break inside quotes. Amounts such as "-$0.50" are not changed.
 */
const FORMULA =
  /^(?=[\t\r\n]|\s*(?:[=@\uff1d\uff20\uff0b\uff0d]|[+-](?!(?:[$€£¥]|[A-Z]{3} )?[\d.]+$)))|(?=[=@+\-\uff1d\uff20\uff0b\uff0d])(?<=[;\t\r\n]\s*)/g;

function csvCell(text: string): string {
  const safe = text.replace(FORMULA, "'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
