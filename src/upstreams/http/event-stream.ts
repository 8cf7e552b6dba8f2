import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";

/** The parser rescans its input for each line that ends in CR, so it gets small parts. */
const FEED_CHARS = 8_192;
const BYTE_ORDER_MARK = 0xfeff;

/** Reads server-sent events from chunks that may split lines and characters anywhere. */
export class EventStream {
  readonly #decoder = new StringDecoder("utf8");
  readonly #parser;
  #overflowed = false;
  #begun = false;

  constructor(maxEventChars: number, onEvent: (data: string) => void) {
    this.#parser = createParser({
      onEvent: ({ data }) => onEvent(data),
      onError: ({ type }) => {
        if (type === "max-buffer-size-exceeded") this.#overflowed = true;
      },
      maxBufferSize: maxEventChars,
    });
  }

  /** False once an event exceeds the maximum size. */
  push(chunk: Buffer): boolean {
    let text = this.#decoder.write(chunk);
    if (!this.#begun && text !== "") {
      this.#begun = true;
      if (text.charCodeAt(0) === BYTE_ORDER_MARK) text = text.slice(1);
    }
    for (let at = 0; at < text.length && !this.#overflowed; at += FEED_CHARS) {
      this.#parser.feed(text.length <= FEED_CHARS ? text : text.slice(at, at + FEED_CHARS));
    }
    return !this.#overflowed;
  }
}
