"""All the evidence in one run: what is proved and enumerated of the model, and what was driven of the library."""
