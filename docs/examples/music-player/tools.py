SONGS = {
    "s1": {"title": "Rain", "artist": "Elm", "seconds": 200},
    "s2": {"title": "Rain", "artist": "Oak", "seconds": 180},
    "s3": {"title": "Harbour", "artist": "Elm", "seconds": 240},
}


def reset(case, seed):
    return {"queue": [], "volume": 5, "playing": None, "lists": {"morning": ["s3"]}}


def search(text: str) -> list:
    """Find songs whose title or artist contains a text."""
    found = {key: song for key, song in SONGS.items() if text.lower() in f"{song['title']} {song['artist']}".lower()}
    return [{"id": key, **song} for key, song in found.items()]


def _check(song):
    if song not in SONGS:
        raise ValueError(f"There is no song {song}; use the id that `search` returns.")


def enqueue(state, song: str) -> list:
    """Add a song to the end of the queue. Returns the queue.

    Args:
        song: The song's id.
    """
    _check(song)
    state["queue"].append(song)
    return state["queue"]


def play(state) -> str:
    """Take the first song of the queue and play it. Returns its id."""
    if not state["queue"]:
        raise ValueError("The queue is empty.")
    state["playing"] = state["queue"].pop(0)
    return state["playing"]


def set_volume(state, level: int) -> int:
    """Set the volume, from 0 to 10."""
    if not 0 <= level <= 10:
        raise ValueError("The volume is between 0 and 10.")
    state["volume"] = level
    return level


def add_to_list(state, name: str, song: str) -> list:
    """Add a song to a playlist, which is created if it does not exist. Returns the playlist."""
    _check(song)
    state["lists"].setdefault(name, []).append(song)
    return state["lists"][name]
