// The command that the extension starts, and what the client's library needs of the server, without the editor.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import {
  CodeAction,
  CodeActionRequest,
  createProtocolConnection,
  DidOpenTextDocumentNotification,
  ExitNotification,
  InitializedNotification,
  InitializeRequest,
  NotebookDocumentSyncOptions,
  PublishDiagnosticsNotification,
  PublishDiagnosticsParams,
  RegistrationRequest,
  ShutdownRequest,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-languageserver-protocol/node";

import { serverCommand } from "../src/command";

const PROGRAM = "import jax\n\nprint(jax.tree_map(abs, {}))\n";

const interpreter = process.env["SPMDLINT_PYTHON"] ?? "";
const skip = interpreter === "" && "SPMDLINT_PYTHON does not name a Python with spmdlint[server]";

test("a finding and its quick fix come through the command of the extension", { skip, timeout: 120_000 }, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "spmdlint-"));
  const file = join(folder, "a.py");
  writeFileSync(join(folder, "spmdlint.toml"), "");
  writeFileSync(file, PROGRAM);
  const uri = pathToFileURL(file).href;

  const { command, args } = serverCommand({ path: "", interpreter }, folder);
  const server = spawn(command, [...args], { stdio: ["pipe", "pipe", "inherit"] });
  context.after(() => server.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => server.on("exit", resolve));
  const connection = createProtocolConnection(
    new StreamMessageReader(server.stdout),
    new StreamMessageWriter(server.stdin),
  );
  const found = new Promise<PublishDiagnosticsParams>((resolve) =>
    connection.onNotification(PublishDiagnosticsNotification.type, (told) => {
      if (told.diagnostics.length > 0) {
        resolve(told);
      }
    }),
  );
  connection.onRequest(RegistrationRequest.type, () => undefined);
  connection.listen();

  const { capabilities } = await connection.sendRequest(InitializeRequest.type, {
    processId: process.pid,
    rootUri: pathToFileURL(folder).href,
    workspaceFolders: null,
    capabilities: {
      notebookDocument: { synchronization: {} },
      textDocument: { codeAction: { codeActionLiteralSupport: { codeActionKind: { valueSet: [] } } } },
    },
  });
  const notebooks = capabilities.notebookDocumentSync as NotebookDocumentSyncOptions | undefined;
  assert.ok(JSON.stringify(notebooks?.notebookSelector).includes("jupyter-notebook"), "as the extension selects them");

  await connection.sendNotification(InitializedNotification.type, {});
  await connection.sendNotification(DidOpenTextDocumentNotification.type, {
    textDocument: { uri, languageId: "python", version: 1, text: PROGRAM },
  });
  const told = await found;
  assert.deepEqual(
    told.diagnostics.map((each) => [each.code, each.range.start.line]),
    [["SPMD602", 2]],
  );
  const actions = await connection.sendRequest(CodeActionRequest.type, {
    textDocument: { uri },
    range: told.diagnostics[0]!.range,
    context: { diagnostics: told.diagnostics },
  });
  const fix = actions?.find((each): each is CodeAction => "isPreferred" in each && each.isPreferred === true);
  const edits = fix?.edit?.changes?.[uri] ?? [];
  assert.deepEqual(
    edits.map((each) => [each.range.start.line, each.range.start.character, each.newText]),
    [[2, PROGRAM.split("\n")[2]!.indexOf("_"), "."]],
  );

  await connection.sendRequest(ShutdownRequest.type);
  await connection.sendNotification(ExitNotification.type);
  assert.equal(await ended, 0);
});
