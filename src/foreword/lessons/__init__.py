"""Teaching: the course and its checker, experiments, claims about the sources."""

from foreword.lessons.course.checking import check
from foreword.lessons.course.texts import own_text
from foreword.picture.mathml import equation

__all__ = ["check", "equation", "own_text"]
