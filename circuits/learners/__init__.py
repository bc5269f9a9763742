"""The circuit as a learner of other packages: scikit-learn, river and CapyMOA.

Each package is imported by the module that is for it, and nowhere else.
"""
