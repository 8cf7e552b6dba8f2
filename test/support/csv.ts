/** The rows of a CSV text by the names of its columns. */
export function parseCsv(text: string): { header: string[]; rows: Record<string, string>[] } {
  const [header = [], ...lines] = text
    .trimEnd()
    .split("\r\n")
    .map((line) =>
      [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
        ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? "",
      ),
    );
  return { header, rows: lines.map((cells) => Object.fromEntries(cells.map((cell, i) => [header[i] ?? "", cell]))) };
}
