"""Drop-in modules: the public names of other libraries, with Foreword behind them.

import foreword.compat.kenlm as kenlm
"""
