"""One module per API: ``handle(request, message)``. Each says its versions, its behaviour, and where it differs."""
