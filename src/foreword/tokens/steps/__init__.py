"""The steps of a ``tokenizer.json``, as ``tokenizers`` takes them: normalizer, pre-tokenizer, model and decoder."""
