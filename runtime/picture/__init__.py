"""A plan to look at: both sides by template, what runs between them, and what does not fit, as a value and as a page."""
