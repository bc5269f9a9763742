"""The circuit's spiking twin: the same two layers, with cells that fire and synapses that learn
from spikes and their traces alone.

Importing this package imports neither Brian2 nor anything that depends on it.
"""
