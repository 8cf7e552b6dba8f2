import type { LookupAddress } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { AddressRanges, isPublicAddress, plainAddress } from "../domain/network.ts";

/** Addresses that are always those of this machine. */
const LOOPBACK = new AddressRanges("0.0.0.0/8,127.0.0.0/8,::/127");

export const REFUSED_ADDRESS =
  "The address is private, local or reserved. Only addresses of the public Internet receive deliveries.";

const RESOLVE_MS = 3_000;
const RESOLVE_TRIES = 2;

/** The parts of an URL, without the host, that decide whether an address of the host receives deliveries. */
type Target = Pick<URL, "protocol" | "port">;

export class DeliveryAddresses {
  readonly #allowed: AddressRanges | undefined;
  readonly #isOwnPort: (port: number) => boolean;
  readonly #resolver: Resolver;

  /**
   * @param allowed ranges that receive deliveries too, also without TLS
   * @param isOwnPort whether the server listens on a port, which then receives no deliveries on this machine
   * @param resolver resolves names without the threads of `dns.lookup`, which a slow name server of a customer would occupy
   */
  constructor(
    allowed: AddressRanges | undefined,
    isOwnPort: (port: number) => boolean,
    resolver = new Resolver({ timeout: RESOLVE_MS, tries: RESOLVE_TRIES }),
  ) {
    this.#allowed = allowed;
    this.#isOwnPort = isOwnPort;
    this.#resolver = resolver;
  }

  /** The normal form of an URL, or what is wrong with it. Names are not resolved yet. */
  readUrl(text: string): { readonly url: string } | { readonly problem: string } {
    const url = URL.parse(text);
    if (!url || !/^https?:$/.test(url.protocol)) return { problem: "must be an address such as https://example.com/hook" };
    if (url.protocol === "http:" && !this.#allowed) return { problem: "must begin with https://" };
    if (url.username !== "" || url.password !== "" || text.includes("#"))
      return { problem: "must have no user name, password or fragment" };
    return this.#refuses(url) ? { problem: REFUSED_ADDRESS } : { url: url.href };
  }

  /** Throws if the host is an address that receives no deliveries. Connections to names call `lookup` instead. */
  check(url: URL): void {
    if (this.#refuses(url)) throw new Error(REFUSED_ADDRESS);
  }

  /**
   * Resolves a name for a connection, and leaves out addresses that receive no deliveries. The connection is made to an address that was
   * checked, so a name cannot change in between.
   */
  lookup(target: Target): LookupFunction {
    return (host, options, done) => {
      this.#resolve(host, target).then(
        (addresses) => {
          const [first] = addresses;
          if (!first) done(new Error(REFUSED_ADDRESS), []);
          else if (options.all) done(null, addresses);
          else done(null, first.address, first.family);
        },
        (error: Error) => done(error, []),
      );
    };
  }

  async #resolve(host: string, target: Target): Promise<LookupAddress[]> {
    const [four, six] = await Promise.allSettled([this.#resolver.resolve4(host), this.#resolver.resolve6(host)]);
    if (four.status === "rejected" && six.status === "rejected")
      throw new Error(`${host} cannot be resolved (${four.reason.code})`);
    const listOf = (found: typeof four, family: number) =>
      found.status === "fulfilled" ? found.value.map((address) => ({ address, family })) : [];
    return [...listOf(four, 4), ...listOf(six, 6)].filter(({ address }) => this.#receives(address, target));
  }

  #refuses(url: URL): boolean {
    const address = url.hostname.replace(/^\[(.*)\]$/, "$1");
    return isIP(address) !== 0 && !this.#receives(address, url);
  }

  #receives(address: string, { protocol, port }: Target): boolean {
    const portNumber = Number(port || (protocol === "https:" ? 443 : 80));
    if (this.#isOwnPort(portNumber) && isOfThisMachine(address)) return false;
    if (this.#allowed?.has(address)) return true;
    return protocol === "https:" && isPublicAddress(address);
  }
}

function isOfThisMachine(address: string): boolean {
  if (LOOPBACK.has(address)) return true;
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return own.some((each) => plainAddress(each.address) === plainAddress(address));
}
