import { expect, test } from "vitest";
import { checkManifest, type FileRecord, writeManifest } from "../../src/database/backup/backup-format.ts";

const FILES = new Map<string, FileRecord>([
  ["a", { bytes: 3, sha256: "11" }],
  ["b", { bytes: 4, sha256: "22" }],
]);
const MANIFEST = writeManifest(FILES);

test("a manifest fits exactly its files", () => {
  expect(() => checkManifest(MANIFEST, FILES)).not.toThrow();
});

test.each<[string, Map<string, FileRecord>, string]>([
  ["a file with another size", new Map([...FILES, ["a", { bytes: 2, sha256: "11" }]]), "a is not the file that was written"],
  ["a file with another content of the same size", new Map([...FILES, ["a", { bytes: 3, sha256: "12" }]]), "a is not the file"],
  ["a missing file", new Map([...FILES].slice(1)), "a is missing"],
  ["a further file", new Map([...FILES, ["c", { bytes: 1, sha256: "33" }]]), "files that its manifest does not name"],
])("%s is refused", (_, files, message) => {
  expect(() => checkManifest(MANIFEST, files)).toThrow(message);
});

test("a manifest that was changed is refused", () => {
  expect(() => checkManifest(MANIFEST.replace('"bytes":3', '"bytes":2'), FILES)).toThrow("manifest.json is not the file");
});
