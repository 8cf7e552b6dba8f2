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

const guide = document.querySelector("#guide");
const reference = document.querySelector("#reference");
let isReferenceLoaded = false;

/** The reference is large: it is loaded when the address names one of its parts, which are all that the guide does not have. */
function show() {
  const name = location.hash.slice(1);
  const isReference = name !== "" && !guide.querySelector(`#${CSS.escape(name)}`);
  // The styles of the reference would change the guide.
  if (isReferenceLoaded && !isReference) return location.reload();
  guide.hidden = isReference;
  reference.hidden = !isReference;
  for (const link of document.querySelectorAll("link[data-view]"))
    link.disabled = isReference !== (link.dataset.view === "reference");
  if (isReference && !isReferenceLoaded) loadReference();
}

function loadReference() {
  isReferenceLoaded = true;
  const script = document.createElement("script");
  script.src = "/docs/assets/reference.js";
  script.addEventListener("load", createReference);
  document.head.append(script);
}

function createReference() {
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
}

addEventListener("hashchange", show);
show();
