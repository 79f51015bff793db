"""The page that starts a run: its state, form, lists to choose from, and the same run as YAML."""
