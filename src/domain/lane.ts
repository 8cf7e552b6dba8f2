/** The unit of locking, batching and distribution. Every account belongs to one lane. */
export type Lane = number;

export const LANE_COUNT = 1_024;

export const BASE32 = "0123456789abcdefghjkmnpqrstvwxyz";

/** The lane of an account or of an object of an account, by its id. An invalid id gives an arbitrary lane. */
export function laneOfId(id: string): Lane {
  const high = BASE32.indexOf(id.charAt(id.length - 2));
  const low = BASE32.indexOf(id.charAt(id.length - 1));
  return ((high << 5) | low) & (LANE_COUNT - 1);
}

/** The id with its lane replaced: the last two base-32 characters, ten bits, encode the lane. */
export function withLane(id: string, lane: Lane): string {
  return id.slice(0, -2) + BASE32.charAt(lane >> 5) + BASE32.charAt(lane & 31);
}

/** Ranges and single lanes, separated by commas: "0-511,600". Undefined for another text. */
export function parseLanes(text: string): Lane[] | undefined {
  const lanes = new Set<Lane>();
  for (const part of text.split(",").filter((range) => range.trim() !== "")) {
    const [whole, first = "", last = first] = /^\s*(\d{1,4})(?:\s*-\s*(\d{1,4}))?\s*$/.exec(part) ?? [];
    const [from, to] = [Number(first), Number(last)];
    if (whole === undefined || from > to || to >= LANE_COUNT) return undefined;
    for (let lane = from; lane <= to; lane++) lanes.add(lane);
  }
  return [...lanes];
}

/** The text that `parseLanes` reads. */
export function laneRanges(lanes: readonly Lane[]): string {
  const ranges: [number, number][] = [];
  for (const lane of lanes) {
    const last = ranges.at(-1);
    if (last && last[1] === lane - 1) last[1] = lane;
    else ranges.push([lane, lane]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");
}

/** A list of lanes from the database: "0,1,600". */
export function lanesOfText(text: string): Lane[] {
  return text === "" ? [] : text.split(",").map(Number);
}
