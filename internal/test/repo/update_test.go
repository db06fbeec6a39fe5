package repo_test

import "flag"

var update = flag.Bool("update", false, "write the generated files instead of comparing them")
