//go:build unix

// Test runs the complete node, examples/kubelet, with real components, and reports the results:
//
//	go run ./test --help
//	go run ./test chaos --once --pods 10
package main

import (
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/test/chaos"
	"github.com/kubeparts/kubeparts/test/compare"
	"github.com/kubeparts/kubeparts/test/conformance"
	"github.com/kubeparts/kubeparts/test/e2enode"
	"github.com/kubeparts/kubeparts/test/footprint"
	"github.com/kubeparts/kubeparts/test/hollow"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/modern"
	"github.com/kubeparts/kubeparts/test/operators"
	"github.com/kubeparts/kubeparts/test/oracle"
	"github.com/kubeparts/kubeparts/test/starts"
)

// commands returns the subcommands.
func commands() []cli.Command {
	return []cli.Command{
		chaos.Command(),
		compare.Command(),
		conformance.Command(),
		e2enode.Command(),
		footprint.Command(),
		hollow.Command(),
		modern.Command(),
		operators.Command(),
		oracle.Command(),
		starts.Command(),
	}
}

func main() {
	if code, ok := e2enode.StandIn(filepath.Base(os.Args[0]), os.Args[1:]); ok { // called by the suite
		os.Exit(code)
	}
	os.Exit(cli.Run(commands(), os.Args[1:], os.Stdout))
}
