"""Quantization formats that ship: each a vendor's form of quantized modules, offered as a third party would."""
