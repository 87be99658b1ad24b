"""The TApp's spec as its author wrote it: fields, templates, values,
and the revisions of templates.
"""
