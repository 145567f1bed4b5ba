"""LSTM, GRU and RNN, laid out step by step."""
