"""A plugin for the vendors' own tests: leaves fields that are refused by design out of what their client sends, so
that the rest of the same request is seen to be accepted."""
import os

from run_vendor import REFUSED

if os.environ.get("CICADA_SDK_LEAVE_OUT"):
    import importlib

    base_client = importlib.import_module(os.environ["CICADA_SDK_LEAVE_OUT"] + "._base_client")
    build_request = base_client.BaseClient._build_request

    def without_refused(self, options, **more):
        if isinstance(options.json_data, dict):
            options.json_data = {key: value for key, value in options.json_data.items()
                                 if key not in REFUSED or (key == "max_tokens" and value)}
        return build_request(self, options, **more)

    base_client.BaseClient._build_request = without_refused
