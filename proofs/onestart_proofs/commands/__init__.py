"""The sub-commands of `onestart` that are about models: prove, explore, check, explain, show."""
