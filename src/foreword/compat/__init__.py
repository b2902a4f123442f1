"""Drop-in modules: the public names of other libraries, with Foreword behind them.

import foreword.compat.fasttext as fasttext
import foreword.compat.kenlm as kenlm
import foreword.compat.pyctcdecode as pyctcdecode
import foreword.compat.sentencepiece as sentencepiece
"""
