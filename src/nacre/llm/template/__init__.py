"""Chat templates: a bounded part of Jinja, read and run without any code of the file's."""
