import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { checkBase64, imageOfBase64, imageOfBytes, imageOfUrl, MAX_IMAGE_BYTES } from "../../src/domain/image.ts";
import { GIF, imageOfSize, JPEG, PNG, WEBP } from "../support/images.ts";

const refused = (field: string, text: string | RegExp) =>
  expect.objectContaining({
    reason: "invalid_argument",
    fields: [{ field, description: typeof text === "string" ? text : expect.stringMatching(text) }],
  });

test.each([
  ["image/png", PNG],
  ["image/jpeg", JPEG],
  ["image/gif", GIF],
  ["image/webp", WEBP],
])("%s is recognized by its bytes, as base64, as a data URL and as bytes", (mediaType, bytes) => {
  const base64 = bytes.toString("base64");
  const image = { kind: "data", mediaType, data: base64 };
  expect(imageOfBase64(mediaType, base64, "f")).toEqual(image);
  expect(imageOfUrl(`data:${mediaType};base64,${base64}`, "f")).toEqual(image);
  expect(imageOfBytes(mediaType, bytes, "f")).toEqual({ ...image, data: bytes });
  expect(imageOfBytes("", bytes, "f")).toEqual({ ...image, data: bytes });
});

test("a media type in capitals or with the name image/jpg is accepted", () => {
  const url = `DATA:Image/JPG;Base64,${JPEG.toString("base64")}`;
  expect(imageOfUrl(url, "f")).toMatchObject({ mediaType: "image/jpeg" });
});

test("an image whose bytes are of another type is refused", () => {
  const base64 = PNG.toString("base64");
  expect(() => imageOfBase64("image/jpeg", base64, "f")).toThrow(refused("f", /those of image\/png/));
  expect(() => imageOfBase64("image/png", btoa("<svg></svg>."), "f")).toThrow(refused("f", /not those of an/));
  expect(() => imageOfBase64("image/svg+xml", base64, "f")).toThrow(refused("f", /media types/));
  expect(() => imageOfBytes("image/gif", PNG, "f")).toThrow(refused("f", /those of image\/png/));
  expect(() => imageOfBytes("", Buffer.from("text"), "f")).toThrow(refused("f", /bytes of an image/));
});

test("a text that is not base64 is refused as such", () => {
  expect(() => imageOfUrl("data:image/png;base64,not base64 at all!!!", "f")).toThrow(refused("f", /must be base64/));
});

test.each(["data:,", "data:image/png,abc", "data:image/png;charset=utf-8;base64,AAAA", "data:image/png;base64"])(
  "%s is not the data URL of an image",
  (url) => expect(() => imageOfUrl(url, "f")).toThrow(refused("f", /must have the form/)),
);

const LARGEST = imageOfSize(MAX_IMAGE_BYTES);

test("an image of 20 MiB is accepted, and one byte more is refused", () => {
  const larger = imageOfSize(MAX_IMAGE_BYTES + 1);
  expect(imageOfBytes("image/png", LARGEST, "f")).toMatchObject({ kind: "data" });
  expect(() => imageOfBytes("image/png", larger, "f")).toThrow(refused("f", /20971520 bytes/));
  expect(imageOfBase64("image/png", LARGEST.toString("base64"), "f")).toMatchObject({ kind: "data" });
  expect(() => imageOfBase64("image/png", larger.toString("base64"), "f")).toThrow(refused("f", /20971520 bytes/));
});

const LONG = imageOfSize(3_000_000).toString("base64");

test.each([
  ["without padding", "AAA"],
  ["with padding inside", `AA==${LONG.slice(4)}`],
  ["with padding at the end of a slice", `${LONG.slice(0, 1_048_574)}==${LONG.slice(1_048_576)}`],
  ["with white space", `AAA\n${LONG.slice(4)}`],
  ["with characters of the form for URLs", `${LONG.slice(0, -4)}-_AA`],
  ["with bits after the last byte", "AB=="],
  ["with characters outside ASCII", "AAAé"],
  ["with a character whose last byte is that of a letter", `AAA\u0141${LONG.slice(4)}`],
])("base64 %s is refused", async (_, base64) => {
  await expect(checkBase64(base64, "f")).rejects.toEqual(refused("f", /must be base64/));
});

test("20 MiB are checked in slices, between which other work runs", async () => {
  const base64 = LARGEST.toString("base64");
  let turns = 0;
  let done = false;
  const checked = checkBase64(base64, "f").then(() => {
    done = true;
  });
  while (!done) {
    await setImmediate();
    turns++;
  }
  await checked;
  expect(turns).toBeGreaterThanOrEqual(20);
});

test.each([
  "https://example.com/cat.png?size=2",
  "http://example.com:8080/cat",
  "https://8.8.8.8/cat.png",
  "https://[2606:4700::1111]/cat.png",
])("the URL %s is accepted unchanged", (url) => {
  expect(imageOfUrl(url, "f")).toEqual({ kind: "url", url });
});

test.each([
  ["file:///etc/passwd", /https, http or data/],
  ["ftp://example.com/cat.png", /https, http or data/],
  ["https://user:password@example.com/", /credentials/],
  ["http://localhost/", /public host/],
  ["cat.png", /must be a URL/],
  ["", /must be a URL/],
  [`https://example.com/${"a".repeat(8_192)}`, /at most 8192 characters/],
])("the URL %s is refused", (url, description) => {
  expect(() => imageOfUrl(url, "f")).toThrow(refused("f", description));
});
