"""What can be done with objects of one kind, verb by verb.

Each class is one ability over the same small base; `kinform.ResourceClient` has them all, a
typed client those that its kind has.
"""
