"""What every room uses: names, files, errors, progress. Needs no torch."""
