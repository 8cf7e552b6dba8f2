import { csvLine } from "../../src/domain/csv.ts";

/** Lines of a CSV file. */
export function csvOf(rows: readonly (readonly (string | bigint)[])[]): string {
  return rows.map((row) => csvLine(row.map(String))).join("");
}

/** Saves the parts as one file of the viewer. */
export function download(name: string, parts: readonly string[]): void {
  const url = URL.createObjectURL(new Blob([...parts], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
