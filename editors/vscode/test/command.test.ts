import assert from "node:assert/strict";
import { test } from "node:test";

import { serverCommand, wayOut } from "../src/command";

test("without settings it is the program on the PATH", () => {
  assert.deepEqual(serverCommand({ path: "", interpreter: "" }, "/w"), { command: "spmdlint", args: ["server"] });
});

test("the path counts before the interpreter", () => {
  const settings = { path: "/a/spmdlint", interpreter: "/b/python" };
  assert.deepEqual(serverCommand(settings, undefined), { command: "/a/spmdlint", args: ["server"] });
});

test("an interpreter runs the module", () => {
  const settings = { path: " ", interpreter: "${workspaceFolder}/.venv/bin/python" };
  const expected = { command: "/w/.venv/bin/python", args: ["-m", "spmdlint", "server"] };
  assert.deepEqual(serverCommand(settings, "/w"), expected);
});

test("the way out names the command and both settings", () => {
  const said = wayOut({ command: "spmdlint", args: ["server"] });
  for (const words of ['"spmdlint server"', "spmdlint[server]", "spmdlint.path", "spmdlint.interpreter"]) {
    assert.ok(said.includes(words), said);
  }
});
