"""Time, memory and exactness against n: LapSum, figures 5, 7, 10, 11 and 14; k-hot sampling,
figure 6."""
