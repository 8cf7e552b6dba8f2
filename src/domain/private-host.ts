import { BlockList, isIP } from "node:net";

/** Addresses that are not on the public Internet: private, loopback, link-local, reserved and multicast ones. */
const PRIVATE_SUBNETS = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "224.0.0.0/3",
  "::/96",
  "::ffff:0:0:0/96",
  "64:ff9b::/32",
  "100::/64",
  "2001::/23",
  "2002::/16",
  "fc00::/7",
  "fe80::/9",
  "ff00::/8",
] as const;

/** The last labels of names that resolve inside a network, such as those of metadata services. */
const PRIVATE_LABELS = ["localhost", "local", "internal"];

const privateAddresses = new BlockList();
for (const subnet of PRIVATE_SUBNETS) {
  const [address = "", prefix] = subnet.split("/");
  privateAddresses.addSubnet(address, Number(prefix), familyOf(address));
}

/** IPv4 addresses written as IPv6 ones are judged as IPv4. */
function isPrivateAddress(address: string): boolean {
  return privateAddresses.check(address, familyOf(address));
}

/**
 * Whether a host, in the form of `URL.hostname`, is evidently inside a network. Names are not resolved. A name with an
 * empty label is not a public name, and resolvers handle it differently.
 */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$|\.$/g, "");
  if (isIP(host) !== 0) return isPrivateAddress(host);
  const labels = host.split(".");
  return labels.length === 1 || labels.includes("") || PRIVATE_LABELS.includes(labels.at(-1) ?? "");
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return address.includes(":") ? "ipv6" : "ipv4";
}
