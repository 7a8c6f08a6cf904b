"""``python -m kinform``: the same as the ``kinform`` command."""

from __future__ import annotations

from kinform.cli import main

if __name__ == "__main__":
    main()
