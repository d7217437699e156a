"""The contract of softorder.kernels.contract, line by line, for every operator and method.

rows.py      rows of scores that lie in a corner, and those that they are compared with
answers.py   what an operator gives for them: the value and derivatives of both orders
promises.py  whether an answer keeps a promise
broken.py    operators that break each kind of promise
"""
