"""The version, where every part of the package can read it."""

VERSION = "0.1.0"
