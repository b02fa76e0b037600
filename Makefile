# The same words as `python3 dev.py`, for those who have make.
WORDS = demo test check lint format golden snapshots screenshots docs fuzz bench build site lock stores
.PHONY: help $(WORDS)

help:
	@python3 dev.py help

$(WORDS):
	@python3 dev.py $@ $(ARGS)
