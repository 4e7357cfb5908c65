"""What was found so far, safe on the disk, and the table of it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

COLUMNS = ["cases", "kills", "resumes", "rows", "bytes", "faults"]


class Record:
    """Finished cases, one JSON object a line. A line is on the disk before the next case of its thread begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.done: dict[str, dict] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            text = path.read_text()
            # A line that was torn by a kill is a case that was not finished.
            whole = text[: text.rfind("\n") + 1]
            if whole != text:
                os.truncate(path, len(whole.encode()))
            for line in whole.splitlines():
                self.keep(json.loads(line))

    def keep(self, entry: dict) -> None:
        self.done[entry["case"]] = entry

    def add(self, entry: dict) -> None:
        with self.lock:
            with open(self.path, "a") as file:
                file.write(json.dumps(entry) + "\n")
                file.flush()
                os.fsync(file.fileno())
            self.keep(entry)

    def faults(self) -> list[dict]:
        return [entry for entry in self.done.values() if entry["fault"]]

    def table(self) -> str:
        """A line for each surface of each campaign, and their sum."""
        lines: dict[str, dict[str, int]] = {}
        skipped: dict[str, str] = {}
        for entry in self.done.values():
            name = entry["case"].rpartition(":")[0].replace(":", " ")
            if entry["skipped"]:
                skipped[name] = entry["skipped"]
                continue
            for line in (lines.setdefault(name, dict.fromkeys(COLUMNS, 0)), lines.setdefault("~all", dict.fromkeys(COLUMNS, 0))):
                line["cases"] += 1
                line["faults"] += bool(entry["fault"])
                for column, count in entry["counts"].items():
                    line[column] = line.get(column, 0) + count
        text = [f"{'campaign':<22}" + "".join(f"{column:>13}" for column in COLUMNS)]
        for name in sorted(lines):
            text.append(f"{name.strip('~'):<22}" + "".join(f"{lines[name][column]:>13,}" for column in COLUMNS))
        return "\n".join(text + [f"{name} was skipped: {why}" for name, why in sorted(skipped.items())])
