"""Starting programs under the runtime checks: one process of a job, or a rehearsal of a whole job on this machine."""
