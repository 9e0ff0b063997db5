// Opens a report page in headless Chromium, from disk or from a live server,
// uses everything on it, and prints what it saw as JSON:
//
//	node page.mjs CHROMIUM URL [SCREENSHOT-DIRECTORY]
//
// "noise" must be empty: console messages, errors, and requests that leave the page.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [executablePath, url, shots] = process.argv.slice(2);
const profile = await mkdtemp(join(tmpdir(), "plimsoll-page-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, acceptDownloads: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const seen = { noise: [], requests: [], widths: {}, downloads: {} };
try {
  const page = await context.newPage();
  page.on("console", (m) => seen.noise.push(`console ${m.type()}: ${m.text()}`));
  page.on("pageerror", (e) => seen.noise.push(`error: ${e.message}`));
  page.on("request", (r) => {
    if (!/^(data|blob):/.test(r.url())) seen.requests.push(r.url());
  });
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(url);
  const drawn = () => page.waitForSelector("html[data-drawn]", { timeout: 30_000 });
  await drawn();
  seen.title = await page.title();
  seen.figures = await page.locator("figure").count();
  seen.plots = await page.locator(".plot").count();
  seen.pictures = await page.locator(".plot svg").count();
  seen.marks = await page.locator(".plot svg path").count();

  for (const kind of ["svg", "png", "csv"]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(`[data-save=${kind}]`).first().click()]);
    const body = await readFile(await download.path());
    seen.downloads[kind] = { name: download.suggestedFilename(), size: body.length, begins: body.subarray(0, 8).toString("latin1") };
  }
  const select = page.locator("#fig-time select");
  if (await select.count() > 0) {
    const before = await page.locator("#fig-time .plot").innerHTML();
    await select.selectOption({ index: (await select.locator("option").count()) - 1 });
    seen.chosen = (await page.locator("#fig-time .plot").innerHTML()) !== before;
  }
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.locator("#theme").click();
  seen.themed = (await paper()) !== light;
  // Every control and scrolling table can be reached from the keyboard and has a name.
  seen.nameless = await page.evaluate(() => [...document.querySelectorAll("button, select, a, [tabindex], [role=img]")]
    .filter((e) => !(e.getAttribute("aria-label") || e.textContent?.trim())).map((e) => e.outerHTML.slice(0, 80)));
  for (const width of [1280, 400]) {
    await page.setViewportSize({ width, height: 900 });
    await page.waitForTimeout(600);
    seen.widths[width] = await page.evaluate(() => document.documentElement.scrollWidth);
    if (shots) await page.screenshot({ path: join(shots, `${width}.png`), fullPage: true });
  }
  await page.pdf({ format: "A4" });
  await page.waitForTimeout(200);
} finally {
  await context.close();
  await rm(profile, { recursive: true, force: true });
}
console.log(JSON.stringify(seen));
