"""Estimators for scikit-learn: `pip install "softorder[sklearn]"`."""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise ImportError(
        'softorder.sklearn needs scikit-learn: pip install "softorder[sklearn]"'
    ) from error

from softorder.sklearn.knn import SoftKNNClassifier

__all__ = ["SoftKNNClassifier"]
