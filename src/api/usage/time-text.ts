/** A time in RFC 3339, without fractions of a second. */
export function timeText(time: Date): string {
  return time.toISOString().replace(".000Z", "Z");
}
