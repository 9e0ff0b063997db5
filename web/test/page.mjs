// Opens a report page in headless Chromium, from disk or from a live server,
// uses everything on it, and prints what it saw as JSON:
//
//	node page.mjs CHROMIUM URL [DIRECTORY]
//
// With a directory, every figure is downloaded into it as FIGURE.svg and
// FIGURE.csv, the first three as FIGURE.png, and one as FIGURE-dark.png. "noise" must be
// empty: console messages, errors, and requests that leave the page.
// PLIMSOLL_SHOTS names a directory for pictures of the whole page.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [executablePath, url, directory] = process.argv.slice(2);
const shots = process.env["PLIMSOLL_SHOTS"];
const profile = await mkdtemp(join(tmpdir(), "plimsoll-page-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, acceptDownloads: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const seen = { noise: [], requests: [], widths: {}, saved: {}, unfocused: [] };
try {
  const page = await context.newPage();
  page.on("console", (m) => seen.noise.push(`console ${m.type()}: ${m.text()}`));
  page.on("pageerror", (e) => seen.noise.push(`error: ${e.message}`));
  page.on("request", (r) => {
    if (!/^(data|blob):/.test(r.url())) seen.requests.push(r.url());
  });
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(url);
  await page.waitForSelector("html[data-drawn]", { timeout: 30_000 });
  // From the beginning of the navigation until the first screen is drawn and the
  // page answers; of use on a quiet machine only.
  seen.ready = await page.evaluate(() => performance.now());
  seen.title = await page.title();
  seen.figures = await page.locator("figure").count();
  seen.plots = await page.locator(".plot").count();
  // What is out of sight is not drawn until it comes near.
  seen.early = await page.locator(".plot svg").count();
  seen.fold = await page.evaluate(() => Object.fromEntries(["h1", ".verdict", ".hero .plot"].map((s) => [s, Math.round(document.querySelector(s)?.getBoundingClientRect().bottom ?? -1)])));
  // The rest is drawn while nothing else is to do, so that a picture of the whole page has all.
  seen.whole = await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((p) => p.clientWidth < 40 || p.querySelector("svg") !== null), { timeout: 20_000 })
    .then(() => true, () => false);
  await page.evaluate(() => document.querySelectorAll("details:has(figure)").forEach((d) => d.setAttribute("open", "")));
  for (const figure of await page.locator("figure").all()) {
    await figure.scrollIntoViewIfNeeded();
    await figure.locator(".plot svg").first().waitFor({ timeout: 20_000 });
  }
  seen.pictures = await page.locator(".plot svg").count();
  seen.marks = await page.locator(".plot svg path").count();

  // The first file is downloaded as a browser does; of the others the page's own
  // blob is taken, because Chromium lets a page wait that downloads dozens of files.
  let downloaded = false;
  const save = async (figure, kind, name) => {
    const button = figure.locator(`[data-save=${kind}]`);
    if (!downloaded) {
      downloaded = true;
      const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
      await download.saveAs(join(directory, name));
      return download.suggestedFilename();
    }
    await page.evaluate(() => {
      window.taken = new Promise((done) => {
        const create = URL.createObjectURL;
        let blob;
        URL.createObjectURL = (b) => { blob = b; URL.createObjectURL = create; return "blob:taken"; };
        const click = HTMLAnchorElement.prototype.click;
        HTMLAnchorElement.prototype.click = async function () {
          HTMLAnchorElement.prototype.click = click;
          const bytes = new Uint8Array(await blob.arrayBuffer());
          done({ name: this.download, text: Array.from(bytes, (b) => String.fromCharCode(b)).join("") });
        };
      });
    });
    await button.click();
    const taken = await page.evaluate(() => Promise.race([window.taken, new Promise((_, no) => setTimeout(() => no(new Error("nothing is offered")), 30_000))]));
    await writeFile(join(directory, name), Buffer.from(taken.text, "latin1"));
    return taken.name;
  };
  if (directory) {
    let pictures = 0; // as PNG: the slow form, and the same for all
    for (const figure of await page.locator("figure").all()) {
      const id = (await figure.getAttribute("id")).replace("fig-", "");
      for (const kind of pictures++ < 3 ? ["svg", "png", "csv"] : ["svg", "csv"]) seen.saved[`${id}.${kind}`] = await save(figure, kind, `${id}.${kind}`);
    }
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
  if (directory) {
    const first = page.locator("figure").first();
    const id = (await first.getAttribute("id")).replace("fig-", "");
    seen.saved[`${id}-dark.png`] = await save(first, "png", `${id}-dark.png`);
  }
  // The keyboard reaches everything that can be operated, in the page's order, and
  // where it is can be seen.
  await page.evaluate(() => document.querySelector(".skip").focus());
  const operable = await page.evaluate(() => [...document.querySelectorAll("a[href], button, select, summary, [tabindex='0']")]
    .filter((e) => e.checkVisibility() && e.closest("details:not([open]) > :not(summary)") === null)
    .map((e, i) => { e.dataset["order"] = String(i); return e.outerHTML.slice(0, 80); }));
  let last = -1;
  seen.stops = 0;
  for (let i = 0; i < operable.length; i++) {
    await page.keyboard.press(i === 0 ? "Shift" : "Tab"); // the skip link has the focus already
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      const style = getComputedStyle(e);
      return { order: Number(e?.dataset["order"] ?? -1), html: e?.outerHTML.slice(0, 80), visible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
    });
    if (at.order !== last + 1) seen.unfocused.push(`after ${last < 0 ? "the beginning" : operable[last]}: ${at.html}, not ${operable[last + 1]}`);
    if (!at.visible) seen.unfocused.push(`focus is not seen on ${at.html}`);
    if (seen.unfocused.length > 3) break;
    last = at.order;
    seen.stops++;
  }
  seen.nameless = await page.evaluate(() => [...document.querySelectorAll("button, select, a, [tabindex], [role=img]")]
    .filter((e) => !(e.getAttribute("aria-label") || e.textContent?.trim())).map((e) => e.outerHTML.slice(0, 80)));
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await page.waitForTimeout(600);
    seen.widths[width] = await page.evaluate(() => document.documentElement.scrollWidth);
    // Of the last width, a phone's: how much of the list of runs has to be scrolled to.
    seen.sideways = await page.evaluate(() => { const list = document.querySelector("#runs .scroll"); return list ? list.scrollWidth - list.clientWidth : 0; });
    if (shots) await page.screenshot({ path: join(shots, `${width}.png`), fullPage: true });
  }
  // Paper gets every picture, those that were never near the window among them.
  await page.reload();
  await page.waitForSelector("html[data-drawn]", { timeout: 30_000 });
  await page.evaluate(() => addEventListener("afterprint", () => { document.body.dataset["printed"] = String(document.querySelectorAll(".plot svg").length); }));
  await page.pdf({ format: "A4" });
  await page.waitForTimeout(200);
  seen.printed = Number(await page.evaluate(() => document.body.dataset["printed"] ?? -1));
} finally {
  await context.close();
  await rm(profile, { recursive: true, force: true });
}
console.log(JSON.stringify(seen));
