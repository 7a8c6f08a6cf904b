"""The reflector's state machine: `step` maps a state and a signal to the next state and an action.

client-go keeps these decisions in ``Reflector.ListAndWatch``; here they are pure functions.
"""
