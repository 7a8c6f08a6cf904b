"""Loading of a client's configuration: kubeconfig files, in-cluster settings, text and dicts.

client-go's ``tools/clientcmd``. `kinform.rest.config` has the resulting `Config`.
"""
