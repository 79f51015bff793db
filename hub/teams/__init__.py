"""Teams: who sees what a team owns, who its members are, and how much it may use."""
