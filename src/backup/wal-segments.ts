/** The first segment of the write-ahead log that a backup needs, and the position up to which it needs it. */
type WalRange = { readonly firstFile: string; readonly stop: string; readonly segmentBytes: number };

const NAME = /^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})$/;
const POSITION = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/;
const LOG_FILE_BYTES = 0x1_0000_0000n;

/** The names of the segments, in the form that PostgreSQL gives the files. */
export function walSegments({ firstFile, stop, segmentBytes }: WalRange): string[] {
  const [, timeline, log, segment] = NAME.exec(firstFile) ?? [];
  const [, high, low] = POSITION.exec(stop) ?? [];
  if (timeline === undefined || high === undefined)
    throw new Error(`not a range of the write-ahead log: ${firstFile} to ${stop}`);
  const perLog = LOG_FILE_BYTES / BigInt(segmentBytes);
  const first = BigInt(`0x${log}`) * perLog + BigInt(`0x${segment}`);
  // The position is the end of the last record, so a segment that starts there is not needed.
  const last = (BigInt(`0x${high}`) * LOG_FILE_BYTES + BigInt(`0x${low}`) - 1n) / BigInt(segmentBytes);
  const names: string[] = [];
  for (let number = first; number <= last; number++) {
    names.push(`${timeline}${hex(number / perLog)}${hex(number % perLog)}`);
  }
  return names;
}

function hex(value: bigint): string {
  return value.toString(16).toUpperCase().padStart(8, "0");
}
