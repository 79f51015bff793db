"""Tasks in Harbor's format: imported as a bundle of workspaces, and written from one."""
