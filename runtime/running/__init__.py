"""Running a model: generate, embed, rerank."""
