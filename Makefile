# The same without make: python tools/setup_env.py lab, python tools/setup_env.py test (see README).
PYTHON ?= python3
SETUP = $(PYTHON) tools/setup_env.py

.PHONY: help lab setup test chapters test-lowest test-full engine-llamacpp engine-vllm test-engines \
        colab editions slides site format clean

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

test-lowest:     ## run cache and model tests on the oldest transformers, chapters as in Colab
	@$(SETUP) test-lowest

test-full:       ## run every test, and every chapter in a real browser
	@$(SETUP) test-full

engine-llamacpp: ## install llama.cpp beside the course (34 MB)
	@$(SETUP) engine-llamacpp

engine-vllm:     ## install vLLM beside the course (2.5 GB, minutes)
	@$(SETUP) engine-vllm

test-engines:    ## run both engines live
	@$(SETUP) test-engines

colab:           ## run the chapters as in Colab, with its older packages
	@$(SETUP) colab

editions:        ## write a student and an instructor copy of each chapter
	@$(SETUP) editions

slides:          ## write a talk for each chapter
	@$(SETUP) slides

site:            ## build the course as a site that works from a disk
	@$(SETUP) site

format:          ## format and mend the code
	@$(SETUP) format

clean:           ## remove the environments and everything built
	@$(SETUP) clean
