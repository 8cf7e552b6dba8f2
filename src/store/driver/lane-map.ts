import { LANE_COUNT, type Lane } from "../../domain/lane.ts";

/** The epochs of the lanes that a cell owns by its own table. */
type OwnedLanes = ReadonlyMap<Lane, bigint>;

/**
 * The owner of each lane. The tables of the cells decide: a lane that several of them claim belongs to the claim with
 * the highest epoch, and to none if those are equal.
 */
export class LaneMap {
  /** The last known claims of each cell. */
  readonly #claims: OwnedLanes[];
  #owners: readonly (number | undefined)[] = [];

  /** @param assumed lanes of each cell until its table is read */
  constructor(assumed: readonly (readonly Lane[])[]) {
    this.#claims = assumed.map((lanes) => new Map(lanes.map((lane) => [lane, 0n])));
    this.#decide();
  }

  /** Adds a cell whose table was not read. */
  append(): void {
    this.#claims.push(new Map());
  }

  ownerOf(lane: Lane): number | undefined {
    return this.#owners[lane];
  }

  /** The lanes that no cell owns. */
  get unowned(): Lane[] {
    return this.#owners.flatMap((owner, lane) => (owner === undefined ? [lane] : []));
  }

  record(cell: number, lanes: OwnedLanes): void {
    this.#claims[cell] = lanes;
    this.#decide();
  }

  #decide(): void {
    this.#owners = Array.from({ length: LANE_COUNT }, (_, lane) => {
      let owner: number | undefined;
      let highest = -1n;
      for (const [cell, claims] of this.#claims.entries()) {
        const epoch = claims.get(lane) ?? -1n;
        if (epoch === highest) owner = undefined;
        if (epoch > highest) [owner, highest] = [cell, epoch];
      }
      return owner;
    });
  }
}
