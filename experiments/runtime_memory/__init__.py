"""Time, memory and exactness of soft top-k against n: LapSum, figures 5, 7, 10 and 11; k-hot
sampling, figure 6."""
