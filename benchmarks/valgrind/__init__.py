"""What a kernel does, counted by valgrind: no other process can disturb a count.

recording.py    calls of kernels, as Python makes them, in a file
count.cpp       replays such a file without Python
counting.py     runs it under callgrind, and reads the counts of every call
"""
