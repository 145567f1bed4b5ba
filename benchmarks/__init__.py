"""Speed of nacre beside its peers; each module is a script."""
