import type { Peer } from "./peer.ts";

/** A kind of chat completion. */
export type Chat = { readonly title: string; readonly options: object };

export const CHATS: readonly Chat[] = [
  { title: "whole replies", options: { stream: false } },
  { title: "streams", options: { stream: true, stream_options: { include_usage: true } } },
];

/** A complete reply contains this text so many times; a stream has a chunk for each. */
export const PIECE = " word";
export const PIECES = 20;

export const CHAT_PATH = "/v1/chat/completions";

export function chatBody({ model }: Peer, { options }: Chat): string {
  const messages = [{ role: "user", content: "Say hello." }];
  return JSON.stringify({ model, messages, max_tokens: 100, ...options });
}
