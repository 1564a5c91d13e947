"""Parts of pages: charts, axes, diagrams, tables, the game viewer, templates."""
