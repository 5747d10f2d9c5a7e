# The same without make: python tools/setup_env.py lab, python tools/setup_env.py test (see README).
PYTHON ?= python3
SETUP = $(PYTHON) tools/setup_env.py

.PHONY: help lab setup test chapters test-lowest test-full format clean

help:            ## say what each word does
	@$(PYTHON) tools/setup_env.py --help

lab:             ## open the course in JupyterLab
	@$(SETUP) lab

setup:           ## only prepare the environment and the model
	@$(SETUP) setup

test:            ## run every test
	@$(SETUP) test

chapters:        ## run the chapters whose source changed, and keep their outputs
	@$(SETUP) chapters

test-lowest:     ## run the cache and model tests on the oldest transformers admitted
	@$(SETUP) test-lowest

test-full:       ## run every test, and every chapter in a real browser
	@$(SETUP) test-full

format:          ## format and mend the code
	@$(SETUP) format

clean:           ## remove the environments and everything built
	@$(SETUP) clean
