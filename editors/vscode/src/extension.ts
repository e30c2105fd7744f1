import { commands, ExtensionContext, window, workspace } from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

import { serverCommand, wayOut } from "./command";

let client: LanguageClient | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  context.subscriptions.push(
    commands.registerCommand("spmdlint.restart", restart),
    workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("spmdlint.path") || event.affectsConfiguration("spmdlint.interpreter")) {
        await restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  const running = client;
  client = undefined;
  await running?.dispose();
}

async function restart(): Promise<void> {
  await deactivate();
  await start();
}

async function start(): Promise<void> {
  const settings = workspace.getConfiguration("spmdlint");
  const server = serverCommand(
    { path: settings.get("path", ""), interpreter: settings.get("interpreter", "") },
    workspace.workspaceFolders?.[0]?.uri.fsPath,
  );
  client = new LanguageClient(
    "spmdlint",
    { command: server.command, args: [...server.args] },
    {
      documentSelector: [
        { scheme: "file", language: "python" },
        { notebook: "jupyter-notebook", language: "python" },
      ],
    },
  );
  try {
    await client.start();
  } catch {
    void window.showErrorMessage(wayOut(server));
  }
}
