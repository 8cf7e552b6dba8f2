import { BlockList, isIP, isIPv4, SocketAddress } from "node:net";

/**
 * The unit that counts as one remote address: an IPv4 address, or the first 64 bits of an IPv6 address. An
 * IPv6 host usually owns its whole /64, so it could evade a limit on single addresses. Expects addresses in
 * the form of the operating system; an IPv4 address on an IPv6 socket counts as IPv4.
 */
export function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  return `${ipv6Groups(address).slice(0, 4).join(":")}::/64`;
}

function ipv6Groups(address: string): string[] {
  const [head = "", tail] = address.split("::");
  const groups = groupsOf(head);
  if (tail !== undefined) {
    const after = groupsOf(tail);
    while (groups.length + after.length < 8) groups.push("0");
    groups.push(...after);
  }
  return groups;
}

function groupsOf(part: string): string[] {
  return part === "" ? [] : part.split(":");
}

/** The address ranges of a key, or of trusted proxies. */
export class AddressRanges {
  /** Ranges, separated by commas. */
  readonly text: string;
  readonly #list = new BlockList();

  constructor(text: string) {
    this.text = text;
    for (const range of text.split(",")) {
      const [address = "", bits] = range.split("/");
      this.#list.addSubnet(address, Number(bits), isIPv4(address) ? "ipv4" : "ipv6");
    }
  }

  /** An IPv4 address in an IPv6 address counts as IPv4. A text that is no address is in no range. */
  has(text: string): boolean {
    const address = plainAddress(text);
    return address !== undefined && this.#list.check(address, isIPv4(address) ? "ipv4" : "ipv6");
  }
}

/** An address without its zone, and as IPv4 if it is an IPv4 address in an IPv6 address. Undefined if it is no address. */
export function plainAddress(text: string): string | undefined {
  const [address = ""] = text.split("%");
  return isIP(address) === 0 ? undefined : rangeText(addressBits(address), 128).split("/")[0];
}

/** The special-purpose registries of IANA. */
const IPV4_PRIVATE = new AddressRanges(
  "0.0.0.0/8,10.0.0.0/8,100.64.0.0/10,127.0.0.0/8,169.254.0.0/16,172.16.0.0/12,192.0.0.0/24,192.0.2.0/24,192.88.99.0/24,192.168.0.0/16,198.18.0.0/15,198.51.100.0/24,203.0.113.0/24,224.0.0.0/3",
);
/** The only addresses of the public Internet, and the parts of them that are not, or that contain an IPv4 address. */
const IPV6_PUBLIC = new AddressRanges("2000::/3");
const IPV6_PRIVATE = new AddressRanges("2001::/23,2001:db8::/32,2002::/16,3fff::/20");

/** Whether an address is one of the public Internet: not private, local or reserved. */
export function isPublicAddress(text: string): boolean {
  const address = plainAddress(text);
  if (address === undefined) return false;
  return isIPv4(address) ? !IPV4_PRIVATE.has(address) : IPV6_PUBLIC.has(address) && !IPV6_PRIVATE.has(address);
}

/** A range such as "10.0.0.0/8", or a single address, with the prefix length; or what is wrong with it. */
export function readRange(text: string): { readonly range: string } | { readonly problem: string } {
  const [, address = "", length] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  if (family === 0) {
    return { problem: "must be an IPv4 or IPv6 address or range, such as 203.0.113.0/24 or 2001:db8::/32" };
  }
  const width = family === 4 ? 32 : 128;
  const prefix = length === undefined ? width : Number(length);
  if (prefix > width) return { problem: `must have a prefix length of at most ${width}` };
  const bits = 128 - width + prefix;
  const value = addressBits(address);
  const start = (value >> BigInt(128 - bits)) << BigInt(128 - bits);
  if (start !== value) {
    return { problem: `must have no bits after its prefix length; the range is ${rangeText(start, bits)}` };
  }
  return { range: rangeText(start, bits) };
}

/** An address as 128 bits: IPv4 addresses as those in IPv6. */
function addressBits(address: string): bigint {
  if (isIPv4(address)) {
    return address.split(".").reduce((value, byte) => (value << 8n) | BigInt(byte), 0xffffn);
  }
  const end = address.lastIndexOf(":") + 1;
  const tail = address.slice(end);
  if (isIPv4(tail)) {
    const value = addressBits(tail) & 0xffff_ffffn;
    const hex = `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;
    return addressBits(address.slice(0, end) + hex);
  }
  return ipv6Groups(address).reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

function rangeText(start: bigint, bits: number): string {
  const group = (i: number) => (start >> BigInt(112 - 16 * i)) & 0xffffn;
  if (start >> 32n === 0xffffn && bits >= 96) {
    const bytes = [group(6) >> 8n, group(6) & 0xffn, group(7) >> 8n, group(7) & 0xffn];
    return `${bytes.join(".")}/${bits - 96}`;
  }
  const hex = Array.from({ length: 8 }, (_, i) => group(i).toString(16)).join(":");
  return `${new SocketAddress({ address: hex, family: "ipv6" }).address}/${bits}`;
}

/** Whether a host, as in an address or a Host header without its port, always is this machine. */
export function isLoopbackHost(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i.test(host);
}
