import { randomUUID } from "node:crypto";
import { MAX_CALLS, MAX_ID_CHARACTERS } from "../../domain/prompt.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import type { ReplyBuffer } from "./reply-buffer.ts";

/** Chat completions accept ids of up to 200 characters, so longer ones are replaced. */
const MAX_ID_CHARS = 200;
/** Arguments buffered before the name of their call is known. */
const MAX_EARLY_CHARS = 65_536;

export type ToolCallPart = {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly arguments?: string | undefined;
  /** All arguments, in case the upstream sends no parts of them. */
  readonly whole?: string | undefined;
};

type OpenCall = {
  id: string | undefined;
  /** The position in the reply; undefined until the name is known. */
  index: number | undefined;
  /** Arguments that arrived before the name. */
  early: string;
  hasArguments: boolean;
  whole: string;
};

/**
 * Writes the tool calls of a reply into its buffer. Upstreams number calls as they like, leave out ids and send names
 * late: callers get each call with an id and a name in its first piece, and numbers without gaps.
 */
export class ToolCalls {
  readonly #reply: ReplyBuffer;
  readonly #calls = new Map<string, OpenCall>();
  readonly #ids = new Set<string>();
  #begun = 0;

  constructor(reply: ReplyBuffer) {
    this.#reply = reply;
  }

  has(key: string): boolean {
    return this.#calls.has(key);
  }

  idOf(key: string): string | undefined {
    return this.#calls.get(key)?.id;
  }

  /**
   * Appends a part to the call with this key, which the upstream uses for all its parts. A call that a request could
   * not send back ends the reply: a failure would be free, and prompts can cause such calls.
   */
  append(key: string, part: ToolCallPart): void {
    if (this.#reply.state !== "open") return;
    const call = this.#callOf(key);
    if (!call || (part.name ?? "").length > MAX_ID_CHARACTERS) {
      this.#writeWhole();
      this.#reply.cut();
      return;
    }
    if (part.id !== undefined && part.id !== "") call.id ??= part.id;
    if (part.whole) call.whole = part.whole;
    const text = part.arguments ?? "";
    if (text !== "") call.hasArguments = true;
    if (call.index === undefined && !part.name) {
      call.early += text;
      if (call.early.length > MAX_EARLY_CHARS) throw garbled("a tool call has no name");
    } else if (call.index === undefined) {
      this.#begin(call, part.name ?? "", text);
    } else if (text !== "") {
      this.#reply.appendToolCall({ index: call.index, id: "", name: "", arguments: text });
    }
  }

  /** Called when all calls are complete. A call without arguments gets an empty object, which is valid JSON. */
  end(): void {
    if (this.#reply.state !== "open") return;
    for (const { index } of this.#calls.values()) {
      if (index === undefined) throw garbled("a tool call has no name");
    }
    this.#writeWhole();
  }

  #writeWhole(): void {
    for (const [key, { index, hasArguments, whole }] of this.#calls) {
      if (index !== undefined && !hasArguments) this.append(key, { arguments: whole });
    }
  }

  /** Undefined if there are too many calls. */
  #callOf(key: string): OpenCall | undefined {
    const known = this.#calls.get(key);
    if (known) return known;
    if (this.#calls.size >= MAX_CALLS) return undefined;
    const call: OpenCall = { id: undefined, index: undefined, early: "", hasArguments: false, whole: "{}" };
    this.#calls.set(key, call);
    return call;
  }

  #begin(call: OpenCall, name: string, text: string): void {
    const index = this.#begun++;
    call.index = index;
    this.#reply.appendToolCall({ index, id: this.#uniqueId(call.id), name, arguments: call.early + text });
    call.early = "";
  }

  #uniqueId(id = ""): string {
    const isUsable = id !== "" && id.length <= MAX_ID_CHARS && !this.#ids.has(id);
    const unique = isUsable ? id : `call_${randomUUID().replaceAll("-", "")}`;
    this.#ids.add(unique);
    return unique;
  }
}

function garbled(message: string): UpstreamFailure {
  return new UpstreamFailure("garbled", message);
}
