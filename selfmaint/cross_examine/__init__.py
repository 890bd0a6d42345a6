"""Verdicts checked by something that shares no code with the decision: an answer-set solver, and the definition.

A *bounded, one-sided* search. It looks for databases that agree with everything known, the views' contents, the update,
keys, foreign keys, not-null columns, comparisons and copies, and on which a view's new state is another one than the
verdict says. One that is found, and that the definition confirms, is a defect of the decision. "Nothing found" proves
nothing: only so many candidate rows of the base relations are looked at, and only for so long.

    question.py      what is asked: the views as written, what is known, the states that verdicts promise
    matches.py       the base rows that a database may be made of, over the values of `domains.py`
    encoding.py      the question as an answer-set program: rules for views, before and after the update
    worker.py        the solver, in a process of its own (`examine.py`) that may be killed or run out of memory
    neighbourhood.py of more data the rows near the update, and all of them
    definition.py    what is believed: the views as written, evaluated on the databases found
    examine.py       asking, what came of it, and a file that says all of it
"""
