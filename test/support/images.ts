/** The smallest bytes that have the types of images. */
export const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
export const GIF = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");
export const JPEG = Buffer.concat([
  Buffer.from([0xff, 0xd8, 0xff, 0xe0]),
  Buffer.from("\0\x10JFIF\0\x01", "latin1"),
  Buffer.from([0xff, 0xd9]),
]);
export const WEBP = Buffer.from("RIFF\x1a\0\0\0WEBPVP8L\r\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0", "latin1");

/** Bytes that begin like a PNG image. */
export function imageOfSize(bytes: number): Buffer {
  const image = Buffer.alloc(bytes, "vx");
  PNG.copy(image, 0, 0, 8);
  return image;
}
