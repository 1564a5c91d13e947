"""The library's face: what `import alphagateau` offers, by what it is for."""
