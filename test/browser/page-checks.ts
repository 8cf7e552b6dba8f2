import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";

/** The luminance of the background, from 0 for black to 1 for white. */
export const BRIGHTNESS = `
  const colors = [document.body, document.documentElement].map((one) => getComputedStyle(one).backgroundColor);
  const shown = colors.find((color) => color !== "rgba(0, 0, 0, 0)") ?? "rgb(255, 255, 255)";
  const [red, green, blue] = shown.match(/[\\d.]+/g).map(Number);
  (red + green + blue) / 3 / 255;
`;

/** Texts that overflow their box. */
export const CUT_OFF = `[...document.querySelectorAll("pre, .panel, .cm-scroller, .scalar-code-block > [tabindex]")]
  .filter((one) => one.clientWidth > 0 && one.scrollWidth > one.clientWidth)
  .map((one) => one.textContent)`;

/** Names of columns that are shown without a value, where the rows of tables are cards. */
export const WITHOUT_VALUE = `[...document.querySelectorAll(".table:not([aria-hidden]) td")]
  .filter((one) => getComputedStyle(one, "::before").display === "block")
  .filter((one) => one.textContent.trim() === "" && one.getBoundingClientRect().height > 0)
  .map((one) => one.closest("table").caption.textContent + ": " + one.dataset.label)`;

/** Texts with a character that is shown to the left of the one before it, on the same line. */
export const REVERSED = `(() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const reversed = [];
  const range = document.createRange();
  while (texts.nextNode()) {
    let before;
    for (let at = 0; at < texts.currentNode.length; at++) {
      range.setStart(texts.currentNode, at);
      range.setEnd(texts.currentNode, at + 1);
      const box = range.getBoundingClientRect();
      if (box.width === 0) continue;
      if (before && box.top < before.bottom - 1 && box.left < before.left - 1) reversed.push(texts.currentNode.data);
      before = box;
    }
  }
  return [...new Set(reversed)];
})()`;

/** Ids whose button to copy them is not beside their end. */
export const APART = `[...document.querySelectorAll(".copyable")]
  .filter((one) => {
    const end = [...one.querySelector("code").getClientRects()].at(-1);
    const button = one.querySelector("button").getBoundingClientRect();
    return button.top > end.bottom || button.bottom < end.top || button.left < end.right;
  })
  .map((one) => one.textContent)`;

/** A name that reverses the texts behind it, even if it is in an element that isolates its direction. */
export const REVERSING_NAME = "ci\u2069\u202egnp.exe";

/** Focus outlines around elements that are not interactive. */
export const OUTLINED = `[...document.querySelectorAll("section")]
  .filter((one) => getComputedStyle(one).outlineStyle !== "none")
  .map((one) => one.id)`;

/** What the browser stores for the origin. */
export const STORED = `(async () => ({
  local: Object.entries(localStorage),
  session: Object.entries(sessionStorage),
  databases: await indexedDB.databases(),
  caches: await caches.keys(),
}))()`;

/** Evaluates to a promise that charts have the size of their window: they get it in the frame that shows a new one. */
export const RESIZED = "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve())))";

/** Pairs of visible elements in the container that cover each other. */
export function overlapping(page: Page, container: string, elements: string): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll(${JSON.stringify(container)})].flatMap((container) => {
    const shown = [...container.querySelectorAll(${JSON.stringify(elements)})].flatMap((element) => {
      const box = element.getBoundingClientRect();
      return box.width > 0 && box.height > 0 ? [{ element, box }] : [];
    });
    const covers = (one, other) =>
      Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1 &&
      Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1;
    return shown.flatMap((one, i) =>
      shown
        .slice(i + 1)
        .filter((other) => !one.element.contains(other.element) && !other.element.contains(one.element))
        .filter((other) => covers(one.box, other.box))
        .map((other) => one.element.outerHTML.slice(0, 200) + " covers " + other.element.outerHTML.slice(0, 200)),
    );
  })`);
}

/** Waits until the field with this label has the focus. A function that Playwright polls in the page would violate its policy. */
export async function focused(page: Page, label: string): Promise<void> {
  const current = () => page.evaluate("document.activeElement?.labels?.[0]?.textContent");
  await expect.poll(current).toBe(label);
}

/** Visible elements that are not completely between the left and the right border of the window. */
export function outside(page: Page, elements: string): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll(${JSON.stringify(elements)})]
    .filter((one) => {
      const { left, right, width } = one.getBoundingClientRect();
      return width > 0 && getComputedStyle(one).opacity !== "0" && (left < 0 || right > innerWidth + 1);
    })
    .map((one) => one.outerHTML.slice(0, 200))`);
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The accessibility rules that the page violates, each with an element. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return await page.evaluate(`(async () => {
    const { violations } = await axe.run({ resultTypes: ["violations"], preload: false });
    return violations.map(({ id, nodes }) => id + ": " + nodes[0].html.slice(0, 300));
  })()`);
}
