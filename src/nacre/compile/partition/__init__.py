"""Third stage: operations gathered into layers, each of which runs tile by tile."""
