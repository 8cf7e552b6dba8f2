/**
 * What counts as one remote address: an IPv4 address, or the first 64 bits of an IPv6 address. A host on IPv6 usually
 * owns all addresses of its /64, so a limit on single addresses would not bind it. Takes addresses as the operating
 * system writes them; an IPv4 address that arrived over an IPv6 socket counts as itself.
 */
export function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  const [head = "", tail] = address.split("::");
  const groups = groupsOf(head);
  if (tail !== undefined) {
    const after = groupsOf(tail);
    while (groups.length + after.length < 8) groups.push("0");
    groups.push(...after);
  }
  return `${groups.slice(0, 4).join(":")}::/64`;
}

function groupsOf(part: string): string[] {
  return part === "" ? [] : part.split(":");
}
