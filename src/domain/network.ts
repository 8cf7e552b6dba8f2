/**
 * The unit that counts as one remote address: an IPv4 address, or the first 64 bits of an IPv6 address. An
 * IPv6 host usually owns its whole /64, so it could evade a limit on single addresses. Expects addresses in
 * the form of the operating system; an IPv4 address on an IPv6 socket counts as IPv4.
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
