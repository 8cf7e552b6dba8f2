import { isMap, isScalar, isSeq, type LineCounter, type ParsedNode } from "yaml";
import type { Path } from "./path.ts";

/** The line of a field; for a missing field, the line of the object it is missing from. */
export function lineOf(lines: LineCounter, root: ParsedNode | null, path: Path): number {
  let node: unknown = root;
  let offset = root?.range[0] ?? 0;
  for (const key of path) {
    if (isMap<ParsedNode, unknown>(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && item.key.value === key);
      if (!pair) break;
      // The position of a field is that of its name; the position of a list item is its start.
      offset = pair.key.range[0];
      node = pair.value;
    } else if (isSeq<ParsedNode>(node) && typeof key === "number" && node.items[key]) {
      offset = node.items[key].range[0];
      node = node.items[key];
    } else break;
  }
  return lines.linePos(offset).line;
}
