"""The sources go on: Monday's rows are deleted from the files in `base`, and inserted."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(folder: Path = HERE) -> None:
    """Changes the files of a copy of this example, or of this folder."""
    for file in sorted((folder / "base").glob("*.csv")):
        header, *rows = file.read_text(encoding="utf-8").splitlines()
        for name in (file.stem, f"raw.{file.stem}"):
            gone, come = (_rows(folder / "monday" / f"{name}.{kind}.csv") for kind in ("delete", "insert"))
            rows = [*(row for row in rows if row not in gone), *come]
        file.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")


def _rows(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()[1:] if file.exists() else []


if __name__ == "__main__":
    main()
