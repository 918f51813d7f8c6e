"""Genetic variants, or other bounded columns, against one phenotype, adjusted for covariates."""
