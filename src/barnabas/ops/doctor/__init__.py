"""What is wrong with a cluster: facts that are collected from it, and the findings that follow from them."""
