export const HTML = "text/html; charset=utf-8";
export const CSS = "text/css; charset=utf-8";
export const JAVASCRIPT = "text/javascript; charset=utf-8";
export const TEXT = "text/plain; charset=utf-8";
