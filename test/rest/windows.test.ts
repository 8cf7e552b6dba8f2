import { equals } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CreateKeyRequestSchema } from "../../gen/vx/v1/key_pb.js";
import { readJsonMessage } from "../../src/codec/decode.ts";
import { Readers } from "../../src/codec/json/reader.ts";
import { finish } from "../../src/codec/steps.ts";
import { everything } from "../codec/messages.ts";

const MIB = 1_048_576;
const read = new Readers("ignore").of(CreateKeyRequestSchema);

test("a large body is decoded equally at every window boundary", () => {
  const rest =
    ' ,  "name" : "Größe\\n😀語\\ud83d\\ude00" , "scopes":["me:read", "generate"],\n"requests_per_minute": 12345 , "expires_at":"2027-01-02T03:04:05.678Z", "n": [1.5e3,-0,null,true] }';
  const bytes = Buffer.from(rest);
  const expected = finish(readJsonMessage(read, Buffer.from(`{"later":"" ${rest}`)));
  const start = '{"later":"';
  const body = Buffer.alloc(MIB + bytes.length, "x");
  body.write(start);
  for (let after = 0; after <= bytes.length; after++) {
    body.write('"', MIB - after - 1);
    bytes.copy(body, MIB - after);
    const message = finish(readJsonMessage(read, body.subarray(0, MIB - after + bytes.length)));
    expect(equals(CreateKeyRequestSchema, message as never, expected as never)).toBe(true);
  }
});

test("values for the library's parser are passed to it whole at every window boundary", () => {
  const readPlain = new Readers("refuse").of(everything.message("Plain"));
  const struct = { a: "word é ".repeat(34_000), b: [1, 2] };
  for (let units = 0; units < 10; units++) {
    const filling = "x".repeat(MIB - 250_000 + units * 25_000);
    const text = JSON.stringify({ plain_string: filling, plain_struct: struct, plain_int32: 7 });
    const message = finish(readJsonMessage(readPlain, Buffer.from(text)));
    expect(message).toMatchObject({ plainStruct: struct, plainInt32: 7 });
  }
});

test("a name after long white space is found, also across a window boundary", () => {
  const start = '{"later":"';
  for (let units = 0; units < 8; units++) {
    const space = " ".repeat(65_536);
    const filling = "x".repeat(MIB - start.length - '",'.length - space.length - units);
    const body = `${start}${filling}",${space}"name":"a"}`;
    expect(finish(readJsonMessage(read, Buffer.from(body)))).toMatchObject({ name: "a" });
  }
});

test("invalid UTF-8 is rejected in every window", () => {
  for (const window of [0, 1, 2]) {
    const body = Buffer.from(`{"later":"${"x".repeat(3 * MIB)}"}`);
    body[window * MIB + 20] = 0xff;
    expect(() => finish(readJsonMessage(read, body))).toThrow("the body is not valid UTF-8");
  }
});

test("values for the library's parser are rejected when they are too large", () => {
  const readKey = new Readers("refuse").of(CreateKeyRequestSchema);
  for (const length of [262_150, 3 * MIB]) {
    const text = JSON.stringify({ name: "a", expires_at: "x".repeat(length) });
    expect(() => finish(readJsonMessage(readKey, Buffer.from(text)))).toThrow("is too large");
  }
});
