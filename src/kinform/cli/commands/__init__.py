"""The commands of ``kinform``, one module each; `kinform.cli.app` imports them on use."""
