// Runs in the browser, before the bundle.

// What the page wants to remember, a typed key above all, lives as long as the page and nowhere else.
class MemoryStorage {
  #items = new Map();
  get length() {
    return this.#items.size;
  }
  key(index) {
    return [...this.#items.keys()][index] ?? null;
  }
  getItem(name) {
    return this.#items.get(String(name)) ?? null;
  }
  setItem(name, value) {
    this.#items.set(String(name), String(value));
  }
  removeItem(name) {
    this.#items.delete(String(name));
  }
  clear() {
    this.#items.clear();
  }
}

for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(globalThis, name, { value: new MemoryStorage() });
}

// The bundle's copy of zod would try whether it may evaluate code, which the page forbids.
globalThis.__zod_globalConfig = { jitless: true };

addEventListener("DOMContentLoaded", () => {
  globalThis.Scalar.createApiReference("#reference", {
    url: "/openapi.json",
    // The address of the page is right behind every proxy.
    servers: [{ url: location.origin }],
    persistAuth: false,
    telemetry: false,
    proxyUrl: "",
    withDefaultFonts: false,
    hideClientButton: true,
    showDeveloperTools: "never",
    agent: { disabled: true },
    mcp: { disabled: true },
    documentDownloadType: "direct",
    defaultOpenAllTags: true,
    modelsSectionLabel: "Schemas",
  });
});
