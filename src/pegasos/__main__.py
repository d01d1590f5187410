"""python -m pegasos: the command line."""

from pegasos.cli.main import main

main()
