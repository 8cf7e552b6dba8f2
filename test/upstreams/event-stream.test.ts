import fc from "fast-check";
import { expect, test } from "vitest";
import { EventStream } from "../../src/upstreams/http/upstream-exchange.ts";

/** The events that were complete after each chunk. */
function eventsOf(chunks: readonly string[]): string[][] {
  const perChunk: string[][] = [];
  const stream = new EventStream(1_000, (data) => perChunk.at(-1)?.push(data));
  for (const chunk of chunks) {
    perChunk.push([]);
    stream.push(Buffer.from(chunk));
  }
  return perChunk;
}

test("an event is read with the CR that ends it, and the LF after it ends no further line", () => {
  expect(eventsOf(["data: a\r\r", "data: b\r", "\ndata: c\r", "\n\r", "\n", "data: d\n\n"])).toEqual([
    ["a"],
    [],
    [],
    ["b\nc"],
    [],
    ["d"],
  ]);
});

test("events do not depend on the kind of line ends, or on where chunks divide them", () => {
  const text = "data: a\ndata: b\n\nid: 1\ndata: c\n\n\ndata: d\n\n";
  const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 });
  fc.assert(
    fc.property(fc.constantFrom("\r", "\n", "\r\n"), sizes, (lineEnd, sizes) => {
      let rest = text.replaceAll("\n", lineEnd);
      const chunks: string[] = [];
      for (let i = 0; rest !== ""; i++) {
        const size = sizes[i % sizes.length];
        chunks.push(rest.slice(0, size));
        rest = rest.slice(size);
      }
      expect(eventsOf(chunks).flat()).toEqual(["a\nb", "c", "d"]);
    }),
  );
});
