"""The TApp's spec as a user wrote it: fields, templates, values, and revisions of templates."""
