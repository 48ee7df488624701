"""Python loads it at the start of every process of a training on one node: this folder is on PYTHONPATH."""

from frameworks import free_ports, loopback, ray_patience, update_tokens

loopback.keep_to_loopback()
free_ports.install()
ray_patience.install()
update_tokens.install()
