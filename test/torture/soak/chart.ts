export type Series = { readonly name: string; readonly unit: string; readonly values: readonly number[] };

const WIDTH = 720;
const PANEL = 90;
const LEFT = 200;
const PADDING = 14;

/** One panel per series, each starting at zero, so that a constant series looks flat. */
export function chartOf(title: string, minutes: number, series: readonly Series[]): string {
  const height = 40 + series.length * PANEL + 24;
  const panels = series.map((one, i) => panelOf(one, 40 + i * PANEL)).join("\n");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">
<title>${title}</title>
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="${PADDING}" y="24" font-size="14" font-weight="bold">${title}</text>
${panels}
<text x="${LEFT}" y="${height - 8}" fill="#666">0</text>
<text x="${WIDTH - PADDING}" y="${height - 8}" fill="#666" text-anchor="end">${minutes} min</text>
</svg>
`;
}

function panelOf({ name, unit, values }: Series, top: number): string {
  const most = Math.max(...values, 1);
  const across = WIDTH - LEFT - PADDING;
  const down = PANEL - PADDING;
  const points = values.map((value, i) => {
    const x = LEFT + (across * i) / Math.max(1, values.length - 1);
    const y = top + down - (down * value) / most;
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return `<text x="${PADDING}" y="${top + 20}">${name}</text>
<text x="${PADDING}" y="${top + 38}" fill="#666">at most ${Math.round(most)} ${unit}</text>
<line x1="${LEFT}" y1="${top + down}" x2="${WIDTH - PADDING}" y2="${top + down}" stroke="#ccc"/>
<polyline points="${points.join(" ")}" fill="none" stroke="#2563eb" stroke-width="1.5"/>`;
}
