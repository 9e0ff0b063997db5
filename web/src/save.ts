// Downloads: a figure as one SVG or PNG with its title and legend, its table as CSV.
import { viewOf, type Spec } from "./chart";
import { sized, type FigureData, type Legend } from "./figure";

export async function save(figure: FigureData, root: HTMLElement, kind: string): Promise<void> {
  const name = `plimsoll-${figure.id}.${kind}`;
  if (kind === "csv") {
    const table = root.querySelector("table");
    if (table !== null) offer(name, new Blob([csv(table)], { type: "text/csv" }));
    return;
  }
  const view = viewOf(whole(figure, root), getComputedStyle(root));
  view.background(getComputedStyle(root).getPropertyValue("--paper").trim());
  await view.runAsync();
  if (kind === "svg") offer(name, new Blob([await view.toSVG()], { type: "image/svg+xml" }));
  else {
    const canvas = await view.toCanvas(2) as unknown as HTMLCanvasElement;
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (blob !== null) offer(name, blob);
  }
  view.finalize();
}

/** All panels of a figure, or the chosen one, as one specification. */
function whole(figure: FigureData, root: HTMLElement): Spec {
  const chosen = figure.choose === "" ? figure.panels : figure.panels.filter((_, i) => String(i) === root.querySelector<HTMLElement>(".plot")?.dataset["panel"]);
  const columns = Math.min(3, chosen.length);
  const width = columns === 1 ? 720 : 340;
  return {
    title: { text: figure.title, subtitle: [figure.better, figure.n].filter((s) => s !== "").join("; ") },
    vconcat: [
      ...(figure.legend.length > 0 ? [key(figure.legend, columns * width, getComputedStyle(root).getPropertyValue("--sans"))] : []),
      { columns, concat: chosen.map((panel) => {
        const { autosize: _, $schema: __, ...spec } = sized(panel.spec, width);
        return panel.title === "" ? spec : { ...spec, title: { text: panel.title, fontSize: 12 } };
      }) },
    ],
  };
}

/** The legend as a view: entries one after the other, in as many lines as they take. */
function key(legend: Legend[], width: number, font: string): Spec {
  const pen = document.createElement("canvas").getContext("2d");
  if (pen !== null) pen.font = `11px ${font}`;
  const line = 18;
  let [x, y] = [0, 0];
  const entries = legend.map((entry) => {
    const takes = 34 + (pen?.measureText(entry.label).width ?? entry.label.length * 7);
    if (x > 0 && x + takes > width) [x, y] = [0, y + line];
    const at = { label: entry.label, colour: entry.colour, shape: shapes[entry.mark] ?? entry.mark, fill: entry.mark === "hollow" ? "transparent" : entry.colour, x: x + 8, y: y + line / 2 };
    x += takes;
    return at;
  });
  const channel = (field: string, end: number) => ({ field, type: "quantitative", axis: null, scale: { domain: [0, end], range: [0, end], nice: false, zero: false } });
  const raw = (field: string) => ({ field, type: "nominal", scale: null, legend: null });
  return {
    width, height: y + line, data: { values: entries }, view: { stroke: null },
    encoding: { x: channel("x", width), y: channel("y", y + line) },
    layer: [
      { mark: { type: "point", size: 60, strokeWidth: 1.5, opacity: 1 }, encoding: { stroke: raw("colour"), fill: raw("fill"), shape: raw("shape") } },
      { mark: { type: "text", align: "left", dx: 12, baseline: "middle", fontSize: 11 }, encoding: { text: { field: "label" } } },
    ],
  };
}

/** Marks of legends that Vega has no point shape for. */
const shapes: Record<string, string> = { bar: "square", line: "stroke", dash: "M-1,0L-0.4,0M0.1,0L0.7,0", hollow: "circle" };

function csv(table: HTMLTableElement): string {
  const quote = (s: string) => (/[",\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s);
  return [...table.rows]
    .map((row) => [...row.cells].map((cell) => quote(cell.dataset["v"] ?? cell.textContent?.trim() ?? "")).join(","))
    .join("\n") + "\n";
}

function offer(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
