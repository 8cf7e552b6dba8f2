import { isIP, isIPv4, isIPv6 } from "node:net";
import { type AddressRanges, plainAddress } from "../../domain/network.ts";
import type { Credentials } from "../call.ts";

/** No address, so it is in no range of a key. */
export const UNKNOWN_ADDRESS = "unknown";

/**
 * The address of the caller. Behind trusted proxies, it is the nearest address in Forwarded (RFC 7239) or X-Forwarded-For that is not
 * of a trusted proxy. An entry that is no address ends the search at the trusted proxy that sent it. The address is unknown if
 * Forwarded is malformed or the two headers differ: most proxies set one of them and pass on the other as the caller sent it, and a
 * caller must not get the address of a proxy by that.
 */
export function clientAddress(call: Pick<Credentials, "remoteAddress" | "headers">, proxies: AddressRanges | undefined): string {
  const { remoteAddress } = call;
  if (!proxies?.has(remoteAddress)) return remoteAddress;
  const forwarded = call.headers("forwarded");
  const forwardedFor = call.headers("x-forwarded-for");
  const found = [];
  if (forwarded.length > 0) {
    const hops = forwardedHops(forwarded.join(","));
    found.push(hops ? nearest(remoteAddress, hops, proxies) : UNKNOWN_ADDRESS);
  }
  if (forwardedFor.length > 0) {
    found.push(nearest(remoteAddress, forwardedFor.join(",").split(","), proxies));
  }
  const [address = remoteAddress, other = address] = found;
  return address === other ? address : UNKNOWN_ADDRESS;
}

/** `hops` are in the order of the header: the last one was added by the proxy that connects to us. */
function nearest(remoteAddress: string, hops: readonly (string | undefined)[], proxies: AddressRanges): string {
  let address = remoteAddress;
  for (const hop of hops.toReversed()) {
    const next = hop === undefined ? undefined : addressOf(hop.trim());
    if (next === undefined) return address;
    address = next;
    if (!proxies.has(address)) return address;
  }
  return address;
}

// At each place, only one part of the pattern matches spaces, so the time grows with the length of the header, not with its square.
const PAIR = /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:([^\s;,"]+)|"((?:[^"\\]|\\.)*)")[ \t]*)?([;,]|$)/y;

/** The values of "for". Undefined if the header is malformed, because its parts cannot be separated. */
function forwardedHops(header: string): (string | undefined)[] | undefined {
  const hops: (string | undefined)[] = [undefined];
  PAIR.lastIndex = 0;
  for (;;) {
    const match = PAIR.exec(header);
    if (!match) return undefined;
    const [, name, token, quoted, separator] = match;
    if (name?.toLowerCase() === "for") hops[hops.length - 1] = token ?? quoted?.replace(/\\(.)/g, "$1");
    if (separator === "") return hops;
    if (separator === ",") hops.push(undefined);
  }
}

/** An address with or without a port, in brackets if it is an IPv6 address with one. */
function addressOf(hop: string): string | undefined {
  if (isIP(hop) !== 0) return plainAddress(hop);
  const [, v6, v4] = /^(?:\[([^\]]*)\]|([\d.]+))(?::(?:\d{1,5}|_[\w.-]+))?$/.exec(hop) ?? [];
  if (v6 !== undefined && isIPv6(v6)) return plainAddress(v6);
  return v4 !== undefined && isIPv4(v4) ? v4 : undefined;
}
