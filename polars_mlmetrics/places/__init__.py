"""Places of files: this machine and object stores. Which files a source means; how they are read and written whole."""
