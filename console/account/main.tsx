import { render } from "preact";
import "../shared/styles/all.css";
import { App } from "./app.tsx";

render(<App />, document.body);
