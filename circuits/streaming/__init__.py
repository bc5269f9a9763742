"""The circuit in the interfaces of packages for streams: river and CapyMOA.

Either package is imported by the module that is for it, and nowhere else.
"""
