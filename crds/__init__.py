"""The CustomResourceDefinition of TApp and the generator that writes it."""
