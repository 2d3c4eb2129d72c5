"""onestart_conformance: will drive an implementation beside the model and judge it. Nothing is here yet."""
