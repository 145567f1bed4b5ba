"""The timing model beside measurements of real chips: `python -m benchmarks.silicon`."""
