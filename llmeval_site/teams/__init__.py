"""Pages and REST of teams: their members, what they own, and how much of their quotas they use."""
