"""The topology as pure data: operators, the graph that the DSL builds, nodes, sub-topologies, names, descriptions."""
