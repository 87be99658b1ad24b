"""TApp's decisions: values in, values out; `hooks` reads clock, files, environment and sockets."""
