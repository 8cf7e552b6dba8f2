export function toNodeHeaders(headers: Headers | undefined): Record<string, string> {
  return headers ? Object.fromEntries(headers) : {};
}

/** Connect escapes more than gRPC requires, and Google's client for Node unescapes only the required characters. */
export function encodeGrpcMessage(trailer: Headers): void {
  const message = trailer.get("grpc-message");
  if (message === null) return;
  const text = decodeURIComponent(message);
  trailer.set("grpc-message", text.replace(/[^\x20-\x7e]|%/gu, encodeURIComponent));
}
