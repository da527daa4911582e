"""What do the tables, figures, messages and log lines mean? The pages of docs/reference that are made from the source.

`python -m support.reference.pages FOLDER` writes them. What has no meaning here fails: `Undocumented`.
"""
