"""Studies: games × arms × seeds, packed into populations, run on this machine or on a Ray cluster."""
