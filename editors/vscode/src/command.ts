// Which program serves: it knows nothing of the editor, so that it can be tested without one.

export interface Settings {
  readonly path: string;
  readonly interpreter: string;
}

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** The command that starts the server; `folder` is that of the workspace, if there is one. */
export function serverCommand(settings: Settings, folder: string | undefined): Command {
  const path = filled(settings.path, folder);
  const interpreter = filled(settings.interpreter, folder);
  if (path === "" && interpreter !== "") {
    return { command: interpreter, args: ["-m", "spmdlint", "server"] };
  }
  return { command: path === "" ? "spmdlint" : path, args: ["server"] };
}

/** What to do if it does not start. */
export function wayOut({ command, args }: Command): string {
  return (
    `spmdlint: "${[command, ...args].join(" ")}" does not start. Install it with: pip install 'spmdlint[server]'. ` +
    `Then set "spmdlint.path" to that program, or "spmdlint.interpreter" to the Python of its environment.`
  );
}

function filled(setting: string, folder: string | undefined): string {
  return setting.trim().replaceAll("${workspaceFolder}", folder ?? "");
}
