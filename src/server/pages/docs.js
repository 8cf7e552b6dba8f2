// Runs in the browser, before the bundle.

// Everything that the page stores, above all an API key, is kept only as long as the page is open.
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

// The bundle's copy of zod would test whether eval is allowed, and the policy of the page forbids it.
globalThis.__zod_globalConfig = { jitless: true };

addEventListener("DOMContentLoaded", () => {
  globalThis.Scalar.createApiReference("#reference", {
    url: "/openapi.json",
    // The address of the page is also correct behind a proxy.
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
