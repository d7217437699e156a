"""The kernels on machines that we do not have: recorded calls, replayed under emulation."""
