"""A plan to look at: what runs between its two sides, as a value and as a page."""
