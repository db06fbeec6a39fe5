// Operators compares testcluster with a real API server by the tests of a project:
//
//	go run ./test/operators/cmd --help
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/kubeparts/kubeparts/test/operators"
)

func main() {
	if err := operators.Run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "operators: %v\n", err)
		os.Exit(1)
	}
}
