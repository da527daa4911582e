"""Which tables go back with a bad write, to which versions, and how?

Doors:
    `planning_service`            gathers the facts and has a plan made of them
    `plan`                        request, version graph and facts in, a plan out; pure
    `report`                      the plan as text, tree, picture and JSON; pure
    `details_service`             what a person wants to know beside it
    `target_check`, `step_check`  can a table go back there, is it still what the plan speaks of, is every file there?
    `journal`                     the rows of `lakewarden.rollbacks` behind every step
    `execute`                     the saga: go on, forwards or back, as a run of the queue
"""
