"""Metrics for evaluation: functions, and modules that add up batches and ranks."""

from softorder.metrics.accuracy import TopKAccuracy, topk_accuracy
from softorder.metrics.lists import MRR, NDCG, AveragePrecision, HitRate, Precision, Recall
from softorder.metrics.ranking import (
    average_precision,
    hit_rate,
    mrr,
    ndcg,
    precision,
    recall,
)

__all__ = [
    "MRR",
    "NDCG",
    "AveragePrecision",
    "HitRate",
    "Precision",
    "Recall",
    "TopKAccuracy",
    "average_precision",
    "hit_rate",
    "mrr",
    "ndcg",
    "precision",
    "recall",
    "topk_accuracy",
]
