# Everything runs in .venv, which the first target to need it creates.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: test lint types unit demo example bench-bias bench-variance bench-memory bench-reads bench-gigapixel bench-kernels bench-data bench-profile clean

test: lint types unit  ## lint, types and all tests

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

unit: .venv/ready  # a process for each core, of one thread: two that share a core wait for each other
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

demo: .venv/ready  ## learn where to look in megapixel images, in a minute and a half
	$(BIN)/foveate train

example: .venv/ready  ## learn from 1000x1000 images in about a minute
	$(BIN)/python examples/majority_shape.py

bench-bias: .venv/ready  ## mean gradient error over every draw
	$(BIN)/python benchmarks/bias.py

bench-variance: .venv/ready  ## error of each sampler's value and gradient
	$(BIN)/python benchmarks/variance.py

bench-memory: .venv/ready  ## memory of a forward pass from 1 to 100 megapixels
	$(BIN)/python benchmarks/memory.py

bench-reads: .venv/ready  ## random reads from a large TIFF, side by side with other readers
	$(BIN)/python benchmarks/reads.py

bench-gigapixel: .venv/ready  ## time and memory of a prediction from 1 megapixel to 1 gigapixel
	$(BIN)/python benchmarks/gigapixel.py

bench-kernels: .venv/ready  ## the attention networks' kernels against cuDNN's; needs a GPU
	$(BIN)/python benchmarks/attention_kernels.py

bench-profile: .venv/ready  ## where the time of a training step goes
	$(BIN)/python benchmarks/step_profile.py

bench-data: .venv/ready  ## training from files beside training from memory
	$(BIN)/python benchmarks/data_path.py

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "foveate needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
