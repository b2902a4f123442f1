"""The course: twelve lessons from counting to the Transformer, their exercises, and what checks them.

``course/NN_name.py`` in the repository is the source of a lesson; ``notebooks.py`` makes a notebook and a page of it.
"""
