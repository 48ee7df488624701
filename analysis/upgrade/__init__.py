"""Another version of a package, tried in a copy of the project before it is put in place: `crosszero upgrade`."""
