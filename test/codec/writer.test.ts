import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { Surface } from "../../gen/vx/options/v1/options_pb.js";
import { writerOf } from "../../src/codec/json/writer.ts";
import { testFile } from "../rest/descriptors.ts";

test("a message with the option omit_unset leaves out its unset fields with presence", () => {
  const messages = {
    Inner: ["string name"],
    Event: ["string type", "optional int32 index", "Inner inner", "repeated string list", "optional string text"],
  };
  const desc = testFile(messages, {}, Surface.UNSPECIFIED, { omitsUnset: "Event" }).message("Event");
  const write = (init: object) => writerOf(desc)(create(desc, init as never));
  expect(write({ type: "a" })).toBe('{"type":"a","list":[]}');
  expect(write({ index: 0, text: "", inner: {} })).toBe('{"type":"","index":0,"inner":{"name":""},"list":[],"text":""}');
  const usual = testFile(messages).message("Event");
  expect(writerOf(usual)(create(usual))).toBe('{"type":"","index":null,"inner":null,"list":[],"text":null}');
});
