"""Right solutions of unusual kinds, each with its tests in every style that fits: none may be judged wrong."""
