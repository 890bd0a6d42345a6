"""Stored contents, whatever engine reads them: formats, names of columns, bad values; new contents, all or none."""
