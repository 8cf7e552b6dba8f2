import { csvLine } from "../../src/domain/csv.ts";

export function csvOf(header: readonly string[], rows: readonly (readonly (string | bigint)[])[]): string {
  return [header, ...rows].map((row) => csvLine(row.map(String))).join("");
}

/** Saves the text as a file of the viewer. */
export function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
