"""From graded samples and training logs to tables, figures and one page: nothing here needs a GPU or a model."""
