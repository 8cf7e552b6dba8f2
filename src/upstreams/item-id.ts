/**
 * The Responses API accepts encrypted reasoning only under the id that it had. The formats of callers have one opaque
 * text for it, so the id is in front of it. Encrypted texts are base64, which has no colon.
 */
const ITEM_ID = /^([\w-]{1,200}):/;

type EncryptedItem = { readonly id: string | undefined; readonly encrypted: string };

export function joinItemId(id: string | undefined, encrypted: string): string {
  const joined = `${id}:${encrypted}`;
  return id !== undefined && ITEM_ID.test(joined) ? joined : encrypted;
}

/** Without an id, the text is of another API, or was encrypted for another client. */
export function splitItemId(text: string): EncryptedItem {
  const [start, id] = ITEM_ID.exec(text) ?? ["", undefined];
  return { id, encrypted: text.slice(start.length) };
}
