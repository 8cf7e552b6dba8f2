/** The start of a day ("2026-11-22") in the zone of the viewer, some days later; undefined without a valid day. */
export function startOfDay(day: string, later: number): Date | undefined {
  const [, year, month, date] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(day) ?? [];
  return year === undefined ? undefined : new Date(Number(year), Number(month) - 1, Number(date) + later);
}
