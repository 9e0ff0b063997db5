// Bundles the page's script into report/page/bundle.js, which is committed so
// that the Go toolchain alone makes the complete binary. With --check it only
// compares: the committed bundle must be what these sources give.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "report", "page", "bundle.js");
const limit = 1 << 20;

const { outputFiles } = await build({
  absWorkingDir: here,
  entryPoints: ["src/page.ts"],
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
});
// A script element ends at the first "</script", wherever it stands.
const text = outputFiles[0].text.replaceAll("</script", "<\\/script").trim() + "\n";
if (text.length > limit) {
  throw new Error(`bundle: ${text.length} bytes, over the limit of ${limit}`);
}
if (process.argv.includes("--check")) {
  const committed = await readFile(target, "utf8");
  if (committed !== text) {
    throw new Error("bundle: report/page/bundle.js is not what web/ builds; run: npm ci && npm run build");
  }
  console.log(`bundle: committed file is up to date (${text.length} bytes)`);
} else {
  await writeFile(target, text);
  console.log(`bundle: ${text.length} bytes`);
}
